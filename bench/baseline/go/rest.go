package main

import (
	"encoding/json"
	"net"
	"net/http"
)

// maxBody is the maximum size of a request body in bytes: more than the longest credential, escaped.
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
		// The status has been sent; an error here means that the client has disconnected.
		_ = json.NewEncoder(response).Encode(known.verify(body.Credential).json)
	})
	return http.Serve(listener, mux)
}
