package main

import (
	"context"
	"log"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "keyhold.test/example/gen/keyhold/v2alpha1"
)

// requireScope calls next for requests whose credential is valid and has the scope, and rejects all others (RFC 6750). It calls Keyhold for
// each request, so a revocation takes effect at once.
func requireScope(keys pb.ApiKeysServiceClient, scope string, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		credential, ok := credentialOf(r.Header)
		switch {
		case !ok:
			reject(w, http.StatusBadRequest, `Bearer error="invalid_request"`)
			return
		case credential == "":
			reject(w, http.StatusUnauthorized, "Bearer")
			return
		}
		// Behind a proxy, the address that it writes into X-Forwarded-For.
		clientIP, _, _ := net.SplitHostPort(r.RemoteAddr)
		ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
		defer cancel()
		verdict, err := keys.VerifyApiKey(ctx, &pb.VerifyApiKeyRequest{Credential: credential, ClientIp: &clientIP})
		switch {
		case status.Code(err) == codes.InvalidArgument: // longer than any credential
			reject(w, http.StatusUnauthorized, `Bearer error="invalid_token"`)
		case err != nil || verdict.GetErrorCode() == pb.VerificationError_VERIFICATION_ERROR_INTERNAL:
			log.Println("no verdict:", err, verdict.GetErrorMessage())
			w.Header().Set("Retry-After", "1")
			http.Error(w, "no verdict", http.StatusServiceUnavailable)
		case !verdict.IsValid:
			reject(w, http.StatusUnauthorized, `Bearer error="invalid_token"`)
		case !slices.Contains(verdict.Scopes, scope):
			reject(w, http.StatusForbidden, `Bearer error="insufficient_scope", scope="`+scope+`"`)
		default:
			next(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, verdict)))
		}
	}
}

type callerKey struct{}

// callerOf returns the verdict on the credential of the request, which requireScope has admitted.
func callerOf(r *http.Request) *pb.VerifyApiKeyResponse {
	return r.Context().Value(callerKey{}).(*pb.VerifyApiKeyResponse)
}

// validCredential matches visible ASCII without the comma, which joins two values of a header.
var validCredential = regexp.MustCompile(`^[!-+\-.-~]+$`)

// credentialOf returns the credential in Authorization or X-API-Key, if any, and whether it is clear which one is meant.
func credentialOf(header http.Header) (string, bool) {
	authorizations, credentials := header.Values("Authorization"), slices.Clone(header.Values("X-API-Key"))
	if len(authorizations) > 1 || len(credentials) > 1 {
		return "", false
	}
	credentials = slices.DeleteFunc(credentials, func(one string) bool { return one == "" })
	for _, value := range authorizations {
		if scheme, token, _ := strings.Cut(value, " "); strings.EqualFold(scheme, "Bearer") {
			credentials = append(credentials, strings.TrimSpace(token))
		}
	}
	credentials = slices.Compact(credentials)
	if len(credentials) == 0 {
		return "", true
	}
	return credentials[0], len(credentials) == 1 && validCredential.MatchString(credentials[0])
}

func reject(w http.ResponseWriter, code int, challenge string) {
	w.Header().Set("WWW-Authenticate", challenge)
	http.Error(w, http.StatusText(code), code)
}
