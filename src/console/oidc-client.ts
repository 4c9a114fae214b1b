import * as oauth from "oauth4webapi";
import { looksLikeJwt } from "../token/jwt/compact.ts";
import { SignInError } from "./sign-in-error.ts";

export interface OidcClientOptions {
  /** The issuer identifier, exactly as in its tokens. Over http only on a loopback address. */
  readonly issuer: string;
  /** The audience that access tokens must have. */
  readonly audience: string;
  readonly clientId: string;
  /** Null: a public client. */
  readonly clientSecret: string | null;
  readonly scopes: readonly string[];
}

/** What connects the response of the issuer with the sign-in that it answers. */
export interface LoginAttempt {
  readonly state: string;
  readonly nonce: string;
  readonly codeVerifier: string;
  readonly redirectUri: string;
}

/** Milliseconds for one request to the issuer. */
const TIMEOUT = 5_000;

/** A client of one OpenID Connect issuer: authorization code with PKCE (RFC 7636), and RP-initiated logout. */
export class OidcClient {
  readonly #options: OidcClientOptions;
  readonly #client: oauth.Client;
  /** The issuer's metadata is read when it is first needed, and kept. */
  #reading: Promise<oauth.AuthorizationServer> | undefined;

  constructor(options: OidcClientOptions) {
    this.#options = options;
    this.#client = { client_id: options.clientId };
  }

  /** Returns the URL at which the person signs in. Rejects with `SignInError`. */
  async begin(redirectUri: string): Promise<{ url: string; attempt: LoginAttempt }> {
    const { authorization_endpoint } = await this.#metadata();
    const url = webUrl(authorization_endpoint);
    if (url === null) throw new SignInError("unavailable", { reason: "the issuer has no authorization_endpoint" });
    const state = oauth.generateRandomState();
    const nonce = oauth.generateRandomNonce();
    const codeVerifier = oauth.generateRandomCodeVerifier();
    const parameters = {
      response_type: "code",
      client_id: this.#client.client_id,
      redirect_uri: redirectUri,
      scope: this.#options.scopes.join(" "),
      ...{ state, nonce },
      code_challenge: await oauth.calculatePKCECodeChallenge(codeVerifier),
      code_challenge_method: "S256",
      ...this.#target(),
    };
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
    return { url: url.href, attempt: { state, nonce, codeVerifier, redirectUri } };
  }

  /** Exchanges the code in a response of the issuer for its tokens. Rejects with `SignInError`. */
  async finish(response: URLSearchParams, attempt: LoginAttempt): Promise<{ accessToken: string; idToken: string }> {
    const issuer = await this.#metadata();
    const { nonce, state, codeVerifier, redirectUri } = attempt;
    try {
      const code = oauth.validateAuthResponse(issuer, this.#client, response, state);
      const authentication = this.#authentication(issuer);
      const options = { ...this.#requestOptions(), additionalParameters: this.#target() };
      const answer = await oauth.authorizationCodeGrantRequest(
        ...([issuer, this.#client, authentication, code, redirectUri, codeVerifier, options] as const),
      );
      const checks = { expectedNonce: nonce, requireIdToken: true };
      const tokens = await oauth.processAuthorizationCodeResponse(issuer, this.#client, answer, checks);
      const { access_token: accessToken, token_type, id_token: idToken = "" } = tokens;
      if (token_type === "bearer" && looksLikeJwt(accessToken)) return { accessToken, idToken };
    } catch (error) {
      throw signInErrorOf(error);
    }
    throw new SignInError("no_access_token", { reason: "the access token of the issuer is not a JWT for a bearer" });
  }

  /**
   * Returns the URL at which the person also signs out of the issuer (OpenID Connect RP-Initiated Logout 1.0 §2); undefined if the issuer
   * offers none. Rejects with `SignInError`.
   */
  async logoutUrl(idToken: string | undefined, returnUri: string): Promise<string | undefined> {
    const { end_session_endpoint } = await this.#metadata();
    const url = webUrl(end_session_endpoint);
    if (url === null) return undefined;
    if (idToken !== undefined) url.searchParams.set("id_token_hint", idToken);
    url.searchParams.set("client_id", this.#client.client_id);
    url.searchParams.set("post_logout_redirect_uri", returnUri);
    return url.href;
  }

  /** For whom the access token is: a URI as in RFC 8707 §2, and for issuers that do not know that, such as Auth0, their own parameter. */
  #target(): Record<string, string> {
    const { audience } = this.#options;
    return { ...(URL.canParse(audience) && !audience.includes("#") && { resource: audience }), audience };
  }

  /** OpenID Connect Discovery 1.0 §3: without a list, the issuer supports client_secret_basic. */
  #authentication({ token_endpoint_auth_methods_supported: supported }: oauth.AuthorizationServer): oauth.ClientAuth {
    const { clientSecret } = this.#options;
    if (clientSecret === null) return oauth.None();
    const acceptsBasic = supported?.includes("client_secret_basic") ?? true;
    return acceptsBasic ? oauth.ClientSecretBasic(clientSecret) : oauth.ClientSecretPost(clientSecret);
  }

  async #metadata(): Promise<oauth.AuthorizationServer> {
    this.#reading ??= this.#discover();
    try {
      return await this.#reading;
    } catch (error) {
      this.#reading = undefined;
      const { details, cause } = signInErrorOf(error);
      throw new SignInError("unavailable", details, { cause });
    }
  }

  async #discover(): Promise<oauth.AuthorizationServer> {
    const issuer = new URL(this.#options.issuer);
    return oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, this.#requestOptions()));
  }

  #requestOptions() {
    // The configuration allows http only for an issuer on this machine.
    const isLocal = this.#options.issuer.startsWith("http:");
    return { signal: AbortSignal.timeout(TIMEOUT), [oauth.allowInsecureRequests]: isLocal };
  }
}

function webUrl(text: string | undefined): URL | null {
  const url = text === undefined ? null : URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) ? url : null;
}

/** The form of error codes of OAuth. */
const ERROR_CODE = /^[\w.-]{1,64}$/;

/** Maps errors of the library, and of its connections. Its messages, unlike their causes, contain no text of the issuer and no token. */
function signInErrorOf(error: unknown): SignInError {
  if (error instanceof oauth.AuthorizationResponseError || error instanceof oauth.ResponseBodyError) {
    const code = error.error === "access_denied" ? "denied" : "rejected";
    const issuerError = ERROR_CODE.test(error.error) ? error.error : "malformed";
    return new SignInError(code, { reason: error.message, issuer_error: issuerError });
  }
  const isOfLibrary =
    error instanceof oauth.OperationProcessingError ||
    error instanceof oauth.UnsupportedOperationError ||
    error instanceof oauth.WWWAuthenticateChallengeError;
  if (isOfLibrary) return new SignInError("rejected", { reason: error.message });
  return new SignInError("unavailable", { reason: "the issuer is unreachable" }, { cause: error });
}
