package main

import (
	"context"
	"log"
	"net/http"
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
		credentials := credentialsOf(r.Header)
		if len(credentials) != 1 {
			rejectCount(w, len(credentials))
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
		defer cancel()
		verdict, err := keys.VerifyApiKey(ctx, &pb.VerifyApiKeyRequest{Credential: credentials[0]})
		switch {
		case status.Code(err) == codes.InvalidArgument: // longer than any credential
			reject(w, http.StatusUnauthorized, `Bearer error="invalid_token"`)
		case err != nil || verdict.GetErrorCode() == pb.VerificationError_VERIFICATION_ERROR_INTERNAL:
			log.Println("no verdict:", err, verdict.GetErrorMessage())
			reject(w, http.StatusServiceUnavailable, "Bearer")
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

// credentialsOf returns the credentials in Authorization and X-API-Key.
func credentialsOf(header http.Header) []string {
	credentials := slices.Clone(header.Values("X-API-Key"))
	for _, value := range header.Values("Authorization") {
		if scheme, token, _ := strings.Cut(value, " "); strings.EqualFold(scheme, "Bearer") {
			credentials = append(credentials, strings.TrimSpace(token))
		}
	}
	for i, credential := range credentials {
		credentials[i] = strings.ToValidUTF8(credential, "?") // gRPC sends no other strings
	}
	return slices.DeleteFunc(credentials, func(one string) bool { return one == "" })
}

func rejectCount(w http.ResponseWriter, count int) {
	if count == 0 {
		reject(w, http.StatusUnauthorized, "Bearer")
	} else {
		reject(w, http.StatusBadRequest, `Bearer error="invalid_request"`)
	}
}

func reject(w http.ResponseWriter, code int, challenge string) {
	w.Header().Set("WWW-Authenticate", challenge)
	http.Error(w, http.StatusText(code), code)
}
