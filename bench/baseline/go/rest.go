package main

import (
	"encoding/json"
	"net"
	"net/http"
)

// maxBody is the largest request body, in bytes: more than the largest credential, escaped.
const maxBody = 1 << 16

func serveREST(listener net.Listener, known keys) error {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /verify", func(response http.ResponseWriter, request *http.Request) {
		var body struct {
			Credential string `json:"credential"`
		}
		if err := json.NewDecoder(http.MaxBytesReader(response, request.Body, maxBody)).Decode(&body); err != nil {
			http.Error(response, err.Error(), http.StatusBadRequest)
			return
		}
		response.Header().Set("Content-Type", "application/json")
		// The status is sent by now; a client that has disconnected needs no other.
		_ = json.NewEncoder(response).Encode(known.verify(body.Credential).json)
	})
	return http.Serve(listener, mux)
}
