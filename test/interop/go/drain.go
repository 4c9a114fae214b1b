package main

import (
	"bufio"
	"context"
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	pb "keyhold.test/interop/gen/keyhold/v2alpha1"
)

const (
	drainCallers = 16
	// drainAfter is the number of calls after which the server receives SIGTERM.
	drainAfter = 500
)

// drain calls a server of its own, which shuts down meanwhile. No call that reaches the server may fail.
func drain(ctx context.Context, ok step) {
	server := exec.CommandContext(ctx, os.Getenv("KEYHOLD_SERVE"))
	log := bufio.NewScanner(must(server.StdoutPipe()))
	check(server.Start())
	var started struct{ URL string }
	for started.URL == "" && log.Scan() {
		_ = json.Unmarshal(log.Bytes(), &started)
	}
	go func() {
		for log.Scan() {
		}
	}()
	parameters := keepalive.ClientParameters{Time: 10 * time.Second, PermitWithoutStream: true}
	keys := pb.NewApiKeysServiceClient(dial(must(url.Parse(started.URL)), grpc.WithKeepaliveParams(parameters)))
	var count atomic.Int64
	failures := make(chan error)
	for range drainCallers {
		go func() {
			for {
				if _, err := keys.VerifyApiKey(ctx, &pb.VerifyApiKeyRequest{Credential: "never imported"}); err != nil {
					failures <- err
					return
				}
				if count.Add(1) == drainAfter {
					check(server.Process.Signal(syscall.SIGTERM))
				}
			}
		}()
	}
	var lost []string
	for range drainCallers {
		// Then no server listens.
		if err := <-failures; !strings.Contains(err.Error(), "connection refused") {
			lost = append(lost, err.Error())
		}
	}
	ok("no accepted call is lost", len(lost) == 0, lost)
	check(server.Wait())
}
