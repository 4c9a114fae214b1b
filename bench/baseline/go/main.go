// Verifies cached keys in Go, over REST (net/http, encoding/json) or gRPC (grpc-go), as a typical program with these libraries: it
// decodes the request, looks up the credential by its SHA-256, checks the expiry and encodes the response.
//
//go:generate ../../../node_modules/.bin/buf generate
package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"log"
	"net"
	"os"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	pb "keyhold/bench/baseline/gen/keyhold/v2alpha1"
)

// verdict is the JSON form of VerifyApiKeyResponse.
type verdict struct {
	IsValid        bool              `json:"is_valid"`
	KeyID          string            `json:"key_id,omitempty"`
	ActorID        string            `json:"actor_id,omitempty"`
	Scopes         []string          `json:"scopes"`
	Metadata       map[string]string `json:"metadata"`
	Status         string            `json:"status,omitempty"`
	ExpireTime     *time.Time        `json:"expire_time,omitempty"`
	Issuer         string            `json:"issuer,omitempty"`
	CredentialType string            `json:"credential_type,omitempty"`
	ErrorCode      string            `json:"error_code,omitempty"`
	ErrorMessage   string            `json:"error_message,omitempty"`
	MissingScopes  []string          `json:"missing_scopes"`
}

// key is the verdict on a credential, in the form of each protocol.
type key struct {
	expireTime *time.Time
	json       *verdict
	proto      *pb.VerifyApiKeyResponse
}

// keys maps the SHA-256 of a credential to its key.
type keys map[[sha256.Size]byte]key

var notFound = key{
	json: &verdict{ErrorCode: "VERIFICATION_ERROR_NOT_FOUND"},
	proto: &pb.VerifyApiKeyResponse{
		ErrorCode: pb.VerificationError_VERIFICATION_ERROR_NOT_FOUND.Enum(),
	},
}

var expired = key{
	json:  &verdict{ErrorCode: "VERIFICATION_ERROR_EXPIRED"},
	proto: &pb.VerifyApiKeyResponse{ErrorCode: pb.VerificationError_VERIFICATION_ERROR_EXPIRED.Enum()},
}

func (known keys) verify(credential string) key {
	found, ok := known[sha256.Sum256([]byte(credential))]
	if !ok {
		return notFound
	}
	if found.expireTime != nil && !time.Now().Before(*found.expireTime) {
		return expired
	}
	return found
}

// readKeys reads a file with one JSON object per line: a credential and Keyhold's verdict on it.
func readKeys(name string) (keys, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	known := keys{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var line struct {
			Credential string          `json:"credential"`
			Verdict    json.RawMessage `json:"verdict"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return nil, err
		}
		one := key{json: &verdict{}, proto: &pb.VerifyApiKeyResponse{}}
		if err := json.Unmarshal(line.Verdict, one.json); err != nil {
			return nil, err
		}
		if err := protojson.Unmarshal(line.Verdict, one.proto); err != nil {
			return nil, err
		}
		one.expireTime = one.json.ExpireTime
		known[sha256.Sum256([]byte(line.Credential))] = one
	}
	return known, lines.Err()
}

// main serves the keys of the file $KEYS on port $PORT; its argument is the protocol.
func main() {
	known, err := readKeys(os.Getenv("KEYS"))
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Getenv("PORT"))
	if err != nil {
		log.Fatal(err)
	}
	serve := map[string]func(net.Listener, keys) error{"rest": serveREST, "grpc": serveGRPC}[os.Args[1]]
	log.Fatal(serve(listener, known))
}
