package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// sample is one answered request.
type sample struct {
	operation string
	end       time.Time
	took      time.Duration
}

// service has the URL of a node, and that of the node that verifies, which may be the same.
type service struct {
	base       string
	verifyBase string
}

// client sends requests sequentially and records their latencies.
type client struct {
	http    *http.Client
	service service
	pause   func()
	samples []sample
}

// send sends JSON and decodes the response into `into`, unless that is nil. Any status but 200 is an error.
func (c *client) send(operation, method, path string, body any, into any) error {
	c.pause()
	text, err := encode(body)
	if err != nil {
		return err
	}
	base := c.service.base
	if operation == "verify" {
		base = c.service.verifyBase
	}
	request, err := http.NewRequest(method, base+path, strings.NewReader(text))
	if err != nil {
		return err
	}
	if text != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	start := time.Now()
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	end := time.Now()
	c.samples = append(c.samples, sample{operation, end, end.Sub(start)})
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %d: %.300s", operation, response.StatusCode, answer)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(answer, into)
}

func encode(body any) (string, error) {
	if body == nil {
		return "", nil
	}
	text, err := json.Marshal(body)
	return string(text), err
}

type fields = map[string]any

const (
	issuedPath   = "/v2alpha1/admin/issuedApiKeys"
	importedPath = "/v2alpha1/admin/importedApiKeys"
	keysPath     = "/v2alpha1/admin/apiKeys"
)

// expectVerdict verifies a credential and returns an error unless the verdict is the expected one.
func (c *client) expectVerdict(credential string, valid bool) error {
	var verdict struct {
		IsValid   bool   `json:"is_valid"`
		ErrorCode string `json:"error_code"`
	}
	if err := c.send("verify", "POST", keysPath+":verify", fields{"credential": credential}, &verdict); err != nil {
		return err
	}
	if verdict.IsValid != valid {
		return fmt.Errorf("verify: is_valid is %t %s", verdict.IsValid, verdict.ErrorCode)
	}
	return nil
}

// issued is the response to the creation of a key.
type issued struct {
	Secret string `json:"secret"`
	Key    struct {
		ID string `json:"key_id"`
	} `json:"issued_api_key"`
}

func (c *client) issue() (issued, error) {
	var key issued
	err := c.send("create", "POST", issuedPath, fields{
		"name": "Production server", "actor_id": "user_0123456789",
		"scopes": []string{"documents.read", "documents.write"}, "metadata": fields{"team": "payments"},
	}, &key)
	return key, err
}
