package main

import (
	"cmp"
	"encoding/json"
	"net/http"
	"os"
	"time"

	pb "keyhold.test/example/gen/keyhold/v2alpha1"
)

// serve listens on PORT. Its token needs only the scope keyhold:verify.
func serve() error {
	connection, err := connect(os.Getenv("KEYHOLD_URL"), os.Getenv("KEYHOLD_TOKEN"))
	if err != nil {
		return err
	}
	keys := pb.NewApiKeysServiceClient(connection)

	http.HandleFunc("GET /books", requireScope(keys, "read", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]string{"reader": callerOf(r).GetActorId()})
	}))
	address := "127.0.0.1:" + cmp.Or(os.Getenv("PORT"), "3000")
	server := &http.Server{Addr: address, ReadHeaderTimeout: 5 * time.Second}
	return server.ListenAndServe()
}
