package main

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/url"
)

// work is what one kind of client does repeatedly; `iteration` counts from 0.
type work struct {
	name string
	// clients is the number of clients of this kind.
	clients int
	do      func(c *client, keys []issued, iteration int) error
}

// works has the proportions of a production service: most clients verify.
var works = []work{
	{"read and verify", 270, readAndVerify},
	{"derive", 60, derive},
	{"life cycle", 50, lifeCycle},
	{"import", 25, importOne},
	{"self-revoke", 15, selfRevoke},
	{"batch import", 2, batchImport},
	{"page", 15, page},
}

func readAndVerify(c *client, keys []issued, iteration int) error {
	key := keys[iteration%len(keys)]
	if iteration%5 == 0 {
		return c.send("get", "GET", issuedPath+"/"+key.Key.ID, nil, nil)
	}
	return c.expectVerdict(key.Secret, true)
}

func derive(c *client, keys []issued, iteration int) error {
	algorithm := []string{"TOKEN_ALGORITHM_JWT", "TOKEN_ALGORITHM_MACAROON"}[iteration%2]
	var derived struct {
		Token struct {
			Token string `json:"token"`
		} `json:"token"`
	}
	request := fields{"credential": keys[iteration%len(keys)].Secret, "algorithm": algorithm, "ttl": "1h"}
	if err := c.send("derive", "POST", keysPath+":derive", request, &derived); err != nil {
		return err
	}
	return c.expectVerdict(derived.Token.Token, true)
}

func lifeCycle(c *client, _ []issued, _ int) error {
	key, err := c.issue()
	if err != nil {
		return err
	}
	path := issuedPath + "/" + key.Key.ID
	var rotated issued
	return inOrder(
		func() error { return c.send("get", "GET", path, nil, nil) },
		func() error { return c.send("update", "PATCH", path, fields{"name": "Renamed"}, nil) },
		func() error { return c.expectVerdict(key.Secret, true) },
		func() error { return c.send("rotate", "POST", path+":rotate", fields{}, &rotated) },
		func() error { return c.expectVerdict(key.Secret, false) },
		func() error { return c.expectVerdict(rotated.Secret, true) },
		func() error { return c.revoke(key.Key.ID) },
		func() error { return c.expectVerdict(rotated.Secret, false) },
	)
}

func (c *client) revoke(id string) error {
	reason := fields{"reason": "REVOCATION_REASON_SUPERSEDED"}
	return c.send("revoke", "POST", keysPath+"/"+id+":revoke", reason, nil)
}

func importOne(c *client, _ []issued, _ int) error {
	request := newImport()
	rawKey := fmt.Sprint(request["raw_key"])
	var imported struct {
		ID string `json:"key_id"`
	}
	if err := c.send("import", "POST", importedPath, request, &imported); err != nil {
		return err
	}
	return inOrder(
		func() error { return c.expectVerdict(rawKey, true) },
		func() error { return c.send("delete", "DELETE", importedPath+"/"+imported.ID, nil, nil) },
		func() error { return c.expectVerdict(rawKey, false) },
	)
}

func selfRevoke(c *client, _ []issued, _ int) error {
	key, err := c.issue()
	if err != nil {
		return err
	}
	request := fields{"credential": key.Secret, "reason": "REVOCATION_REASON_KEY_COMPROMISE"}
	return inOrder(
		func() error { return c.send("self-revoke", "POST", "/v2alpha1/apiKeys:selfRevoke", request, nil) },
		func() error { return c.expectVerdict(key.Secret, false) },
	)
}

const batchSize = 100

func batchImport(c *client, _ []issued, _ int) error {
	requests := make([]fields, batchSize)
	for index := range requests {
		requests[index] = newImport()
	}
	var answer struct {
		Successes int `json:"success_count"`
	}
	err := c.send("batch import", "POST", importedPath+":batchCreate", fields{"requests": requests}, &answer)
	if err == nil && answer.Successes != batchSize {
		return fmt.Errorf("batch import: %d of %d", answer.Successes, batchSize)
	}
	return err
}

func newImport() fields {
	random := make([]byte, 16)
	if _, err := rand.Read(random); err != nil {
		panic(err)
	}
	return fields{
		"name": "Imported", "actor_id": "user_0123456789", "scopes": []string{"documents.read"},
		"raw_key": "sk_live_" + hex.EncodeToString(random),
	}
}

// pages is the number of pages that a client reads.
const pages = 5

func page(c *client, _ []issued, _ int) error {
	token := ""
	for number := 0; number < pages; number++ {
		var answer struct {
			Next string `json:"next_page_token"`
		}
		path := issuedPath + "?page_size=50&page_token=" + url.QueryEscape(token)
		if err := c.send("list", "GET", path, nil, &answer); err != nil {
			return err
		}
		if answer.Next == "" {
			return fmt.Errorf("list: page %d is the last", number+1)
		}
		token = answer.Next
	}
	return nil
}

func inOrder(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
