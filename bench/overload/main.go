// Open-loop load: sends requests at a fixed rate without waiting for responses, as long as a connection is free. Prints a report as JSON,
// and exits with status 1 if a response was neither 200 nor 503 with Retry-After, or if a connection was lost.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

func main() {
	address := flag.String("address", "127.0.0.1:4420", "address of the service")
	path := flag.String("path", "/", "path of the requests")
	headers := flag.String("headers", "", "additional header lines, separated by |")
	bodies := flag.String("bodies", "", "file of bodies, one per line, sent in a cycle")
	rate := flag.Float64("rate", 1000, "requests per second of all connections together")
	connections := flag.Int("connections", 2000, "maximum number of in-flight requests")
	hold := flag.Duration("hold", 20*time.Second, "duration of the load")
	flag.Parse()
	requests, err := format(*address, *path, *headers, *bodies)
	if err == nil {
		err = run(*address, requests, *rate, *connections, *hold)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// format returns a request for each body.
func format(address, path, headers, file string) ([][]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	more := ""
	for _, line := range strings.Split(headers, "|") {
		if line != "" {
			more += line + "\r\n"
		}
	}
	var requests [][]byte
	for _, body := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		requests = append(requests, fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s",
			path, address, more, len(body), body))
	}
	return requests, nil
}

func run(address string, requests [][]byte, rate float64, connections int, hold time.Duration) error {
	clients := make([]*client, connections)
	for index := range clients {
		connection, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		clients[index] = &client{connection: connection, reader: bufio.NewReader(connection)}
	}
	start := time.Now().Add(100 * time.Millisecond)
	until := start.Add(hold)
	interval := time.Duration(float64(connections) / rate * float64(time.Second))
	over := make(chan struct{})
	health := watchHealth(address, until)
	var group sync.WaitGroup
	for index, one := range clients {
		group.Add(1)
		go func() {
			defer group.Done()
			begin := start.Add(interval * time.Duration(index) / time.Duration(connections))
			one.err = one.drive(requests, index, begin, interval, until)
		}()
	}
	go func() { group.Wait(); close(over) }()
	select {
	case <-over:
	case <-time.After(hold + 30*time.Second):
		return fmt.Errorf("some responses are missing")
	}
	result, err := summarize(clients, until.Sub(start), <-health)
	if err != nil {
		return err
	}
	text, _ := json.Marshal(result)
	fmt.Println(string(text))
	return nil
}
