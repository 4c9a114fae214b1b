import protovalidate

from acme.v1 import user_pb2
from keyhold.v2alpha1 import issued_api_keys_pb2


def violations(message):
    return [violation.proto.rule_id for violation in protovalidate.collect_violations(message)]


def own_rules(ok):
    key = issued_api_keys_pb2.CreateIssuedApiKeyRequest(name="bot", actor_id="team_42")
    valid = user_pb2.User(email="ada@example.com", login="ada", key=key)
    ok("a valid message", violations(valid) == [], violations(valid))

    wrong = violations(user_pb2.User(email="nobody", login="Ada", key=key))
    ok("a rule that Keyhold does not use, and one of the program", wrong == ["string.email", "string.lowercase"], wrong)

    wrong = violations(issued_api_keys_pb2.CreateIssuedApiKeyRequest(name="n" * 256))
    ok("the rules of Keyhold", wrong == ["string.max_len", "required"], wrong)
