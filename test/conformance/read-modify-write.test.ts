import type { DescMessage, DescMethodUnary, MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { ImportedApiKeysService } from "../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { IssuedApiKeysService } from "../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { table } from "../support/conformance.ts";
import { answered, type CallRpc, messageJson } from "../support/protocols/call.ts";
import { draft, imported, issued } from "../support/protocols/keys.ts";
import { useProtocols } from "../support/protocols/protocols.ts";
import type { Json } from "../support/rest.ts";

const suite = useProtocols();

type Get = DescMethodUnary<DescMessage, DescMessage>;

const KINDS = [
  [
    "issued_api_key",
    IssuedApiKeysService.method.getIssuedApiKey,
    IssuedApiKeysService.method.updateIssuedApiKey,
    issued,
  ],
  [
    "imported_api_key",
    ImportedApiKeysService.method.getImportedApiKey,
    ImportedApiKeysService.method.updateImportedApiKey,
    imported,
  ],
] as const satisfies readonly (readonly [string, Get, Get, (call: CallRpc) => Promise<{ keyId: string }>])[];

/** Without a mask, and with all fields (AIP-134). */
const MASKS = [undefined, { paths: ["*"] }];

test.for(table(KINDS))("over every protocol, an %s as it was read can be changed and sent", async (kind) => {
  const [member, getMethod, updateMethod, make] = kind;
  const [get, update]: [Get, Get] = [getMethod, updateMethod];
  for (const { name: protocol, call } of suite.protocols) {
    const { keyId } = await make(call);
    const read = async () => answered(await call(get, { keyId }));
    const json = async (): Promise<Json> => messageJson(get.output, await read());
    const send = async (changes: object, updateMask: object | undefined) => {
      const resource = { ...(await read()), ...changes };
      const field = updateMethod.input.fields.find(({ name }) => name === member);
      const request: Record<string, unknown> = { [field?.localName ?? ""]: resource, updateMask };
      return call(update, request as MessageInitShape<DescMessage>);
    };
    for (const [round, mask] of MASKS.entries()) {
      const { name: _name, update_time: _time, ...before } = await json();
      const changed = messageJson(update.output, answered(await send({ name: `round ${round}` }, mask)));
      const { update_time: _, ...after } = changed;
      expect({ protocol, ...after }).toEqual({ protocol, ...before, name: `round ${round}` });
      expect(after.scopes).toEqual(draft().scopes);
      const stored = await json();
      expect(stored).toEqual(changed);
      expect(await send({ name: "stolen", actorId: "thief" }, mask)).toMatchObject({
        ok: false,
        code: "INVALID_ARGUMENT",
        details: {
          "google.rpc.BadRequest": { field_violations: [{ field: `${member}.actor_id`, reason: "IMMUTABLE_FIELD" }] },
        },
      });
      expect(await json()).toEqual(stored);
    }
  }
});

test.for(table(KINDS))(
  "over every protocol, an outdated %s does not undo a change of its expiry and addresses",
  async (kind) => {
    const [member, getMethod, updateMethod, make] = kind;
    const [get, update]: [Get, Get] = [getMethod, updateMethod];
    const field = updateMethod.input.fields.find(({ name }) => name === member);
    for (const { name: protocol, call } of suite.protocols) {
      const { keyId } = await make(call);
      const read = async () => answered(await call(get, { keyId }));
      const send = async (resource: object, updateMask: object | undefined) => {
        const request: Record<string, unknown> = { [field?.localName ?? ""]: resource, updateMask };
        return answered(await call(update, request as MessageInitShape<DescMessage>));
      };
      const restrict = (hours: number, block: string) =>
        send(
          {
            ...{ keyId, expireTime: timestampFromMs(Date.now() + hours * 3_600_000) },
            ipRestriction: { allowedCidrs: [block] },
          },
          { paths: ["expire_time", "ip_restriction"] },
        );
      await restrict(9, "0.0.0.0/0");
      const outdated = await read();
      const { expire_time, ip_restriction }: Json = messageJson(update.output, await restrict(1, "192.0.2.0/24"));
      for (const mask of MASKS) {
        const after = messageJson(update.output, await send({ ...outdated, name: "renamed" }, mask));
        expect({ protocol, ...after }).toMatchObject({ name: "renamed", expire_time, ip_restriction });
      }
    }
  },
);
