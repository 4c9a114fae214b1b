// Many clients of a running service at once, each at its own work, like the public benchmark of the nearest peer: verifies and
// reads, derivations, key life cycles, imports, self-revokes, batch imports and paging. Every answer must be the expected one.
// Prints a report as JSON, and ends with status 1 if there was an error.
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

// keyCount is how many keys are there to be verified and read.
const keyCount = 1000

func main() {
	base := flag.String("url", "http://127.0.0.1:4420", "of the service")
	ramp := flag.Duration("ramp", 10*time.Second, "until all clients are there")
	hold := flag.Duration("hold", 30*time.Second, "how long they stay; this part is measured")
	rate := flag.Float64("rate", 0, "requests a second of all clients together; 0: as fast as they are answered")
	flag.Parse()
	result, err := run(*base, *ramp, *hold, *rate)
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

func run(base string, ramp, hold time.Duration, rate float64) (report, error) {
	all := flatten(works)
	transport := &http.Transport{MaxIdleConnsPerHost: len(all)}
	httpClient := &http.Client{Transport: transport, Timeout: 30 * time.Second}
	keys, err := prepare(&client{http: httpClient, base: base, pause: func() {}})
	if err != nil {
		return report{}, err
	}
	start := time.Now()
	from, to := start.Add(ramp), start.Add(ramp+hold)
	var group sync.WaitGroup
	clients, errors := make([]*client, len(all)), make([][]error, len(all))
	for index, one := range all {
		begin := start.Add(ramp * time.Duration(index) / time.Duration(len(all)))
		clients[index] = &client{http: httpClient, base: base, pause: pacer(rate/float64(len(all)), begin)}
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

// flatten answers one work for each client, mixed, so that the ramp brings some of every kind.
func flatten(works []work) []work {
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

// pacer answers what to do before a request: nothing at the rate 0; else to wait until its turn, which is not made up for when
// it was missed.
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

// maxErrors is after how many a client gives up.
const maxErrors = 100

func repeat(c *client, one work, keys []issued, until time.Time) []error {
	var errors []error
	offset := rand.Intn(len(keys))
	for turn := 0; time.Now().Before(until) && len(errors) < maxErrors; turn++ {
		if err := one.do(c, keys, offset+turn); err != nil {
			errors = append(errors, fmt.Errorf("%s: %w", one.name, err))
		}
	}
	return errors
}
