package interop;

import keyhold.model.ErrorResponse;
import keyhold.model.VerifyApiKeyResponse;

/** What needs no credential, and the responses of later releases. */
final class Others {
  private Others() {}

  static void health(Keyhold keyhold, Tap.Steps ok) throws Exception {
    var alive = keyhold.health.alive();
    ok.step("alive", alive.getStatus().equals("ok"), alive);
    var ready = keyhold.health.ready();
    ok.step("ready", ready.getStatus().equals("ok") && ready.getChecks().get("database").equals("ok"), ready);
    var jwks = keyhold.derived.getJwks(null, null);
    ok.step("public keys", !jwks.getKeys().isEmpty() && jwks.getKeys().get(0).getKid() != null, jwks);
  }

  static void laterReleases(Tap.Steps ok) throws Exception {
    String verdict = """
        {"is_valid": false, "scopes": [], "metadata": {}, "missing_scopes": [], "limits": [], "error_code": "VERIFICATION_ERROR_LATER",
         "status": "KEY_STATUS_LATER", "credential_type": "CREDENTIAL_TYPE_LATER", "later": {"field": 1}}""";
    var read = Library.read(verdict, VerifyApiKeyResponse.class);
    ok.step("unknown values and fields of a response are accepted", !read.getIsValid()
        && read.getErrorCode().equals("VERIFICATION_ERROR_LATER") && read.getStatus().equals("KEY_STATUS_LATER"), read);
    String error = """
        {"error": {"code": 400, "message": "", "status": "LATER", "later": 1, "details": [
         {"@type": "type.googleapis.com/google.rpc.Help", "links": []},
         {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "LATER", "domain": "keyhold", "metadata": {}}]}}""";
    var status = Library.read(error, ErrorResponse.class).getError();
    ok.step("and of an error", Keyhold.reason(status).equals("LATER"), status);
  }
}
