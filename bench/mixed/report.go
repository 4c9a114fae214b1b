package main

import (
	"sort"
	"time"
)

// latencies are in milliseconds.
type latencies struct {
	Requests int     `json:"requests"`
	P50      float64 `json:"p50"`
	P95      float64 `json:"p95"`
	P99      float64 `json:"p99"`
}

type report struct {
	Clients int `json:"clients"`
	// Rate is in requests per second while all clients were running.
	Rate float64 `json:"rate"`
	latencies
	Operations map[string]latencies `json:"operations"`
	Errors     int                  `json:"errors"`
	// FirstErrors has at most five of the errors.
	FirstErrors []string `json:"first_errors"`
}

// summarize reports on the requests that were answered between two times. Errors count at any time.
func summarize(samples []sample, from, to time.Time, errors []error) report {
	byOperation := map[string][]time.Duration{}
	var all []time.Duration
	for _, one := range samples {
		if one.end.Before(from) || one.end.After(to) {
			continue
		}
		all = append(all, one.took)
		byOperation[one.operation] = append(byOperation[one.operation], one.took)
	}
	result := report{
		Rate:       float64(len(all)) / to.Sub(from).Seconds(),
		latencies:  summarizeTimes(all),
		Operations: map[string]latencies{},
		Errors:     len(errors),
	}
	for operation, times := range byOperation {
		result.Operations[operation] = summarizeTimes(times)
	}
	for index := 0; index < len(errors) && index < 5; index++ {
		result.FirstErrors = append(result.FirstErrors, errors[index].Error())
	}
	return result
}

func summarizeTimes(times []time.Duration) latencies {
	sort.Slice(times, func(a, b int) bool { return times[a] < times[b] })
	at := func(part float64) float64 {
		if len(times) == 0 {
			return 0
		}
		return float64(times[int(part*float64(len(times)-1))].Microseconds()) / 1000
	}
	return latencies{len(times), at(0.5), at(0.95), at(0.99)}
}
