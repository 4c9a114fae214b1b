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
	// drainRPC is in each line of the server's log that is about a call.
	drainRPC = "keyhold.v2alpha1.ApiKeysService/VerifyApiKey"
)

// drain calls a server of its own, which shuts down meanwhile. No call may fail until no server listens: gRPC repeats those that cross the
// server's GOAWAY.
func drain(ctx context.Context, ok step) {
	server := exec.CommandContext(ctx, os.Getenv("KEYHOLD_SERVE"))
	log := bufio.NewScanner(must(server.StdoutPipe()))
	check(server.Start())
	var started struct{ URL string }
	for started.URL == "" && log.Scan() {
		_ = json.Unmarshal(log.Bytes(), &started)
	}
	accepted := make(chan int64)
	go func() {
		var lines int64
		for log.Scan() {
			if strings.Contains(log.Text(), drainRPC) {
				lines++
			}
		}
		accepted <- lines
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
	ok("no call is lost", len(lost) == 0, lost)
	// Wait closes the pipe, of which nothing may be lost.
	lines, answered := <-accepted, count.Load()
	ok("every accepted call is answered", lines == answered, lines, answered)
	check(server.Wait())
}
