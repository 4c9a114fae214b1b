// Writes go.json. README.md beside it says how it is run.
package main

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"os"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"
	"golang.org/x/crypto/pbkdf2"
	"golang.org/x/crypto/scrypt"
)

type keys struct {
	RawKeys  map[string]string `json:"raw_keys"`
	HmacKeys map[string]string `json:"hmac_keys"`
}

type fast struct {
	Algorithm string `json:"algorithm"`
	Encoding  string `json:"encoding"`
	Value     string `json:"value"`
	Key       string `json:"key"`
	Prefix    string `json:"prefix,omitempty"`
	Suffix    string `json:"suffix,omitempty"`
	HmacKey   string `json:"hmac_key,omitempty"`
}

type slow struct {
	MadeBy string `json:"made_by"`
	Phc    string `json:"phc"`
	Key    string `json:"key"`
}

var salt = []byte("0123456789abcdef")

var encodings = []struct {
	name   string
	encode func([]byte) string
}{
	{"HEX", hex.EncodeToString},
	{"BASE64", base64.StdEncoding.EncodeToString},
	{"BASE64URL", base64.URLEncoding.EncodeToString},
	{"BASE64", base64.RawStdEncoding.EncodeToString},
	{"BASE64URL", base64.RawURLEncoding.EncodeToString},
}

var unpadded = base64.RawStdEncoding.EncodeToString

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

const key = "ascii"

func fastVectors(all keys) (vectors []fast) {
	add := func(algorithm string, hmacKey string, h hash.Hash) {
		turn := len(vectors)
		prefix, suffix := "", ""
		if turn%2 == 1 {
			prefix, suffix = "vör:", ":after"
		}
		h.Write([]byte(prefix + all.RawKeys[key] + suffix))
		encoding := encodings[turn%len(encodings)]
		vectors = append(vectors, fast{algorithm, encoding.name, encoding.encode(h.Sum(nil)), key, prefix, suffix, hmacKey})
	}
	add("SHA256", "", sha256.New())
	add("SHA384", "", sha512.New384())
	add("SHA512", "", sha512.New())
	add("SHA512_256", "", sha512.New512_256())
	for _, name := range []string{"short", "block", "long"} {
		secret := must(hex.DecodeString(all.HmacKeys[name]))
		add("HMAC_SHA256", name, hmac.New(sha256.New, secret))
		add("HMAC_SHA512", name, hmac.New(sha512.New, secret))
	}
	return vectors
}

func slowVectors(all keys) (vectors []slow) {
	raw := []byte(all.RawKeys[key])
	add := func(phc string) { vectors = append(vectors, slow{"x/crypto", phc, key}) }
	add(string(must(bcrypt.GenerateFromPassword(raw, bcrypt.MinCost))))
	for _, lanes := range []uint8{1, 3} {
		settings := fmt.Sprintf("v=19$m=1050,t=2,p=%d$%s$", lanes, unpadded(salt))
		add("$argon2id$" + settings + unpadded(argon2.IDKey(raw, salt, 2, 1050, lanes, 32)))
		add("$argon2i$" + settings + unpadded(argon2.Key(raw, salt, 2, 1050, lanes, 32)))
	}
	add("$scrypt$ln=10,r=8,p=1$" + unpadded(salt) + "$" + unpadded(must(scrypt.Key(raw, salt, 1024, 8, 1, 32))))
	addPbkdf2 := func(name string, hash func() hash.Hash) {
		add("$pbkdf2-" + name + "$i=1001$" + unpadded(salt) + "$" + unpadded(pbkdf2.Key(raw, salt, 1001, 40, hash)))
	}
	addPbkdf2("sha1", sha1.New)
	addPbkdf2("sha256", sha256.New)
	addPbkdf2("sha512", sha512.New)
	return vectors
}

func main() {
	var all keys
	if err := json.Unmarshal(must(os.ReadFile("keys.json")), &all); err != nil {
		panic(err)
	}
	out := map[string]any{
		"maker": "the standard library of Go and golang.org/x/crypto, by make.go",
		"fast":  fastVectors(all),
		"slow":  slowVectors(all),
	}
	if err := os.WriteFile("go.json", must(json.Marshal(out)), 0o644); err != nil {
		panic(err)
	}
}
