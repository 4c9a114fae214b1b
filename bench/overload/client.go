package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// answer is the status of a response and its latency.
type answer struct {
	status int
	took   time.Duration
}

// client is one connection.
type client struct {
	connection net.Conn
	reader     *bufio.Reader
	answers    []answer
	err        error
}

// drive sends a request at every interval. If a response is late, the following requests are sent without a pause until the schedule is
// met again.
func (c *client) drive(requests [][]byte, offset int, begin time.Time, interval time.Duration, until time.Time) error {
	defer c.connection.Close()
	for iteration := 0; ; iteration++ {
		due := begin.Add(time.Duration(iteration) * interval)
		if due.After(until) || time.Now().After(until) {
			return nil
		}
		time.Sleep(time.Until(due))
		sent := time.Now()
		if _, err := c.connection.Write(requests[(offset+iteration*997)%len(requests)]); err != nil {
			return err
		}
		status, err := c.read()
		if err != nil {
			return err
		}
		c.answers = append(c.answers, answer{status, time.Since(sent)})
	}
}

var (
	contentLength = []byte("content-length:")
	retryAfter    = []byte("retry-after:")
)

// read reads one response. A rejection must have Retry-After.
func (c *client) read() (int, error) {
	line, err := c.reader.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if len(line) < 12 {
		return 0, fmt.Errorf("no status line: %q", line)
	}
	status, err := strconv.Atoi(string(line[9:12]))
	if err != nil {
		return 0, err
	}
	length, hasRetryAfter := 0, false
	for {
		line, err = c.reader.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		line = bytes.ToLower(bytes.TrimSpace(line))
		if len(line) == 0 {
			break
		}
		if bytes.HasPrefix(line, contentLength) {
			length, _ = strconv.Atoi(string(bytes.TrimSpace(line[len(contentLength):])))
		}
		hasRetryAfter = hasRetryAfter || bytes.HasPrefix(line, retryAfter)
	}
	if _, err = io.CopyN(io.Discard, c.reader, int64(length)); err != nil {
		return 0, err
	}
	if status != 200 && !(status == 503 && hasRetryAfter) {
		return 0, fmt.Errorf("a response has status %d", status)
	}
	return status, nil
}

// watchHealth requests liveness and readiness ten times per second each, over separate connections.
func watchHealth(address string, until time.Time) <-chan []answer {
	result := make(chan []answer, 1)
	var all []answer
	done := make(chan []answer, 2)
	for _, path := range []string{"/health/alive", "/health/ready"} {
		go func() { done <- watch(address, path, until) }()
	}
	go func() {
		for range 2 {
			all = append(all, <-done...)
		}
		result <- all
	}()
	return result
}

func watch(address, path string, until time.Time) []answer {
	request := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, address)
	connection, err := net.Dial("tcp", address)
	if err != nil {
		return []answer{{status: 0}}
	}
	c := &client{connection: connection, reader: bufio.NewReader(connection)}
	if err = c.drive([][]byte{request}, 0, time.Now(), 100*time.Millisecond, until); err != nil {
		return append(c.answers, answer{status: 0})
	}
	return c.answers
}
