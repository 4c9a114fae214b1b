// Many concurrent clients of a running service, each with its own kind of work: verifications and reads, derivations, key life cycles,
// imports, self-revocations, batch imports and paging. Every response must be the expected one. Prints a report as JSON, and exits with
// status 1 after an error.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand"
	"net/http"
	"os"
	"sync"
	"time"
)

// keyCount is the number of keys that are verified and read.
const keyCount = 1000

func main() {
	base := flag.String("url", "http://127.0.0.1:4420", "URL of the service")
	verifyBase := flag.String("verify-url", "", "URL of a node that only verifies; default: that of the service")
	ramp := flag.Duration("ramp", 10*time.Second, "time in which all clients start")
	hold := flag.Duration("hold", 30*time.Second, "time after the ramp, which is measured")
	rate := flag.Float64("rate", 0, "requests per second of all clients together; 0: unlimited")
	flag.Parse()
	if *verifyBase == "" {
		verifyBase = base
	}
	result, err := run(service{*base, *verifyBase}, *ramp, *hold, *rate)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	text, _ := json.Marshal(result)
	fmt.Println(string(text))
	if result.Errors > 0 {
		fmt.Fprintln(os.Stderr, result.FirstErrors)
		os.Exit(1)
	}
}

func run(urls service, ramp, hold time.Duration, rate float64) (report, error) {
	all := shuffledWork(works)
	transport := &http.Transport{MaxIdleConnsPerHost: len(all)}
	httpClient := &http.Client{Transport: transport, Timeout: 30 * time.Second}
	keys, err := prepare(&client{http: httpClient, service: urls, pause: func() {}})
	if err != nil {
		return report{}, err
	}
	start := time.Now()
	from, to := start.Add(ramp), start.Add(ramp+hold)
	var group sync.WaitGroup
	clients, errors := make([]*client, len(all)), make([][]error, len(all))
	for index, one := range all {
		begin := start.Add(ramp * time.Duration(index) / time.Duration(len(all)))
		clients[index] = &client{http: httpClient, service: urls, pause: pacer(rate/float64(len(all)), begin)}
		group.Add(1)
		go func(index int, one work) {
			defer group.Done()
			time.Sleep(time.Until(begin))
			errors[index] = repeat(clients[index], one, keys, to)
		}(index, one)
	}
	group.Wait()
	var samples []sample
	var failures []error
	for index, one := range clients {
		samples = append(samples, one.samples...)
		failures = append(failures, errors[index]...)
	}
	result := summarize(samples, from, to, failures)
	result.Clients = len(all)
	return result, nil
}

// shuffledWork returns one kind of work per client, shuffled, so that clients of every kind start during the ramp.
func shuffledWork(works []work) []work {
	var all []work
	for _, one := range works {
		for count := 0; count < one.clients; count++ {
			all = append(all, one)
		}
	}
	rand.New(rand.NewSource(1)).Shuffle(len(all), func(a, b int) { all[a], all[b] = all[b], all[a] })
	return all
}

func prepare(c *client) ([]issued, error) {
	keys := make([]issued, keyCount)
	for index := range keys {
		key, err := c.issue()
		if err != nil {
			return nil, err
		}
		keys[index] = key
	}
	return keys, nil
}

// pacer returns a function that delays requests to the given rate; 0: no delay. A missed slot is not made up for.
func pacer(rate float64, begin time.Time) func() {
	if rate == 0 {
		return func() {}
	}
	interval := time.Duration(float64(time.Second) / rate)
	next := begin
	return func() {
		time.Sleep(time.Until(next))
		next = next.Add(interval)
		if now := time.Now(); next.Before(now) {
			next = now
		}
	}
}

// maxErrors is the number of errors after which a client stops.
const maxErrors = 100

func repeat(c *client, one work, keys []issued, until time.Time) []error {
	var errors []error
	offset := rand.Intn(len(keys))
	for iteration := 0; time.Now().Before(until) && len(errors) < maxErrors; iteration++ {
		if err := one.do(c, keys, offset+iteration); err != nil {
			errors = append(errors, fmt.Errorf("%s: %w", one.name, err))
		}
	}
	return errors
}
