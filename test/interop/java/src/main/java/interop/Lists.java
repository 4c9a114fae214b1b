package interop;

import dev.keyhold.v2alpha1.IssuedApiKey;
import dev.keyhold.v2alpha1.ListIssuedApiKeysRequest;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

final class Lists {
  static void check(Keyhold keyhold, Tap.Step step) {
    var actor = Keys.newName();
    var wanted = new ArrayList<String>();
    for (int number = 0; number < 5; number++) wanted.add(Keys.issue(keyhold, actor).getIssuedApiKey().getKeyId());
    Collections.reverse(wanted);

    var filter = "actor_id=\"" + actor + "\" AND status=KEY_STATUS_ACTIVE";
    var request = ListIssuedApiKeysRequest.newBuilder().setPageSize(2).setFilter(filter);
    var found = new ArrayList<List<String>>();
    do {
      var page = keyhold.issued().listIssuedApiKeys(request.build());
      found.add(page.getIssuedApiKeysList().stream().map(IssuedApiKey::getKeyId).toList());
      request.setPageToken(page.getNextPageToken());
    } while (!request.getPageToken().isEmpty());
    var all = found.stream().flatMap(List::stream).toList();
    step.ok("three pages with a filter, newest first", all.equals(wanted), found);
    step.ok("each page has its size", found.stream().map(List::size).toList().equals(List.of(2, 2, 1)), found);
  }
}
