// A receiver of webhooks. Reads WEBHOOK_SECRET and PORT.
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"sync"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

type message struct {
	Type string `json:"type"`
	Data struct {
		KeyID string `json:"key_id"`
	} `json:"data"`
}

func main() {
	webhook, err := webhooks.NewWebhook(os.Getenv("WEBHOOK_SECRET"))
	if err != nil {
		log.Fatal(err)
	}
	// Keep these in your database, with a unique constraint, and add to them in the transaction that processes the message.
	var processed sync.Map
	receive := func(w http.ResponseWriter, r *http.Request) {
		// The signature is of the exact bytes, so it is verified before they are parsed.
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil || webhook.Verify(body, r.Header) != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if _, isRepeat := processed.LoadOrStore(r.Header.Get("webhook-id"), true); isRepeat {
			fmt.Fprint(w, "already processed")
			return
		}
		var m message
		if err := json.Unmarshal(body, &m); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		log.Print(m.Type, " ", m.Data.KeyID)
		fmt.Fprint(w, "processed")
	}
	log.Fatal(http.ListenAndServe("127.0.0.1:"+cmp.Or(os.Getenv("PORT"), "3000"), http.HandlerFunc(receive)))
}
