// Receives the events of the audit log, each once. Reads KEYHOLD_URL, KEYHOLD_TOKEN and RESUME_TOKEN_FILE.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"os"
	"time"
)

type message struct {
	AuditEvent *struct {
		Seq, Action string
		KeyID       string `json:"key_id"`
	} `json:"audit_event"`
	ResumeToken string `json:"resume_token"`
}

// A heartbeat arrives every 15 s: after this time without one, the connection is lost.
const timeout = 30 * time.Second

var tokenFile = cmp.Or(os.Getenv("RESUME_TOKEN_FILE"), "resume-token")

func main() {
	for {
		log.Print(receive())
		// At different times, so that not all receivers connect at once after the server has restarted.
		time.Sleep(time.Second + rand.N(2*time.Second))
	}
}

// receive returns why the stream has ended. Without a token, it begins with the first event of the log.
func receive() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	timer := time.AfterFunc(timeout, cancel)
	url := os.Getenv("KEYHOLD_URL") + "/v2alpha1/admin/auditEvents:watch?start_seq=0"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		log.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("KEYHOLD_TOKEN"))
	if token, err := os.ReadFile(tokenFile); err == nil {
		request.Header.Set("Last-Event-ID", string(token))
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if status := response.StatusCode; status >= 400 && status < 500 && status != http.StatusTooManyRequests {
		body, _ := io.ReadAll(response.Body)
		log.Fatal(string(body))
	}
	for lines := bufio.NewReader(response.Body); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("%s: %w", response.Status, err)
		}
		timer.Reset(timeout)
		data, isData := bytes.CutPrefix(line, []byte("data: "))
		if !isData {
			continue
		}
		var m message
		if err := json.Unmarshal(data, &m); err != nil || m.AuditEvent == nil {
			return fmt.Errorf("the server has ended the stream: %s", data)
		}
		fmt.Println(m.AuditEvent.Seq, m.AuditEvent.Action, m.AuditEvent.KeyID)
		// Save this in your database, in the transaction that processes the event.
		if err := os.WriteFile(tokenFile, []byte(m.ResumeToken), 0o600); err != nil {
			log.Fatal(err)
		}
	}
}
