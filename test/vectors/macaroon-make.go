// Writes macaroon-go.json: macaroons that gopkg.in/macaroon.v2 made, and ours (macaroon-ours.json) as it attenuates them.
//
//	cp test/vectors/macaroon-make.go /some/empty/folder && cd /some/empty/folder
//	go mod init make && go get gopkg.in/macaroon.v2@v2.1.0
//	go run . <checkout>/test/vectors
//	biome check --write <checkout>/test/vectors/macaroon-go.json
package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	macaroon "gopkg.in/macaroon.v2"
)

type caveat struct {
	Identifier     string  `json:"identifier"`
	VerificationID string  `json:"verification_id,omitempty"`
	Location       *string `json:"location,omitempty"`
}

type vector struct {
	Name       string   `json:"name"`
	RootKey    string   `json:"root_key"`
	Identifier string   `json:"identifier"`
	Location   *string  `json:"location"`
	Caveats    []caveat `json:"caveats"`
	Signature  string   `json:"signature"`
	Text       string   `json:"text"`
}

type output struct {
	Maker      string            `json:"maker"`
	Made       []vector          `json:"made"`
	Attenuated map[string]string `json:"attenuated"`
	ThirdParty string            `json:"third_party"`
}

type input struct {
	RootKey struct {
		Secret string `json:"secret"`
	} `json:"root_key"`
	Minted []struct {
		Name string `json:"name"`
		Text string `json:"text"`
	} `json:"minted"`
	Attenuated []struct {
		Name  string   `json:"name"`
		Of    string   `json:"of"`
		Added []string `json:"added"`
	} `json:"attenuated"`
}

type thirdParty struct{ location, key, id string }

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func b64(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

func text(m *macaroon.Macaroon) string {
	data, err := m.MarshalBinary()
	must(err)
	return b64(data)
}

func mustHold(m *macaroon.Macaroon, key []byte) {
	must(m.Verify(key, func(string) error { return nil }, nil))
}

// optional is nil for a field that this library leaves out.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func makeVector(name string, key, id []byte, location string, conditions []string, third *thirdParty) vector {
	m, err := macaroon.New(key, id, location, macaroon.V2)
	must(err)
	for _, condition := range conditions {
		must(m.AddFirstPartyCaveat([]byte(condition)))
	}
	mustHold(m, key)
	if third != nil {
		must(m.AddThirdPartyCaveat([]byte(third.key), []byte(third.id), third.location))
	}
	v := vector{name, hex.EncodeToString(key), b64(id), optional(location), []caveat{}, hex.EncodeToString(m.Signature()), text(m)}
	for _, c := range m.Caveats() {
		v.Caveats = append(v.Caveats, caveat{b64(c.Id), b64(c.VerificationId), optional(c.Location)})
	}
	return v
}

func parse(s string) *macaroon.Macaroon {
	data, err := base64.RawURLEncoding.DecodeString(s)
	must(err)
	var m macaroon.Macaroon
	must(m.UnmarshalBinary(data))
	if text(&m) != s {
		panic("not the same text")
	}
	return &m
}

func span(from, to int) []byte {
	data := []byte{}
	for i := from; i < to; i++ {
		data = append(data, byte(i))
	}
	return data
}

func main() {
	folder := os.Args[1]
	file, err := os.ReadFile(filepath.Join(folder, "macaroon-ours.json"))
	must(err)
	var ours input
	must(json.Unmarshal(file, &ours))
	rootKey, err := hex.DecodeString(ours.RootKey.Secret)
	must(err)

	texts := map[string]string{}
	for _, m := range ours.Minted {
		texts[m.Name] = m.Text
	}
	attenuated := map[string]string{}
	for _, c := range ours.Attenuated {
		m := parse(texts[c.Of])
		mustHold(m, rootKey)
		for _, condition := range c.Added {
			must(m.AddFirstPartyCaveat([]byte(condition)))
		}
		mustHold(m, rootKey)
		attenuated[c.Name] = text(m)
	}
	third := parse(ours.Minted[0].Text)
	must(third.AddThirdPartyCaveat([]byte("a shared key"), []byte("user = alice"), "https://auth.example.com"))

	out := output{"gopkg.in/macaroon.v2 v2.1.0 (Go), by macaroon-make.go", []vector{
		makeVector("bare", []byte("a key"), []byte("an id"), "", nil, nil),
		makeVector("text", []byte("this is our super secret key"), []byte("we used our secret kéy"), "http://mybank/", []string{"test = caveat", "größe = 1"}, nil),
		makeVector("long", span(0, 32), []byte(strings.Repeat("i", 128)), strings.Repeat("l", 127), []string{strings.Repeat("c", 300), "", "c"}, nil),
		makeVector("binary", span(224, 256), span(0, 256), "", []string{string(bytes.Repeat([]byte{0xff, 0x00}, 64))}, nil),
		makeVector("long key", bytes.Repeat([]byte("k"), 100), []byte("id"), "x", []string{"a", "b"}, nil),
		makeVector("third party", []byte("a key"), []byte("an id"), "http://mybank/", []string{"account = 1"}, &thirdParty{"http://auth.mybank/", "a shared key", "user = alice"}),
		makeVector("third party without location", []byte("a key"), []byte("an id"), "", nil, &thirdParty{"", "a shared key", "user = alice"}),
	}, attenuated, text(third)}
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	must(encoder.Encode(out))
	must(os.WriteFile(filepath.Join(folder, "macaroon-go.json"), buffer.Bytes(), 0o644))
}
