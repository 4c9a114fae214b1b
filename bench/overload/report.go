package main

import (
	"fmt"
	"sort"
	"time"
)

// latencies are in milliseconds.
type latencies struct {
	Count int     `json:"count"`
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

type report struct {
	// Sent and Answered are per second; Answered excludes rejections.
	Sent     float64   `json:"sent"`
	Answered float64   `json:"answered"`
	Done     latencies `json:"done"`
	Refused  latencies `json:"refused"`
	Health   latencies `json:"health"`
}

func summarize(clients []*client, hold time.Duration, health []answer) (report, error) {
	var done, refused, healthy []time.Duration
	for _, one := range clients {
		if one.err != nil {
			return report{}, one.err
		}
		for _, answer := range one.answers {
			if answer.status == 200 {
				done = append(done, answer.took)
			} else {
				refused = append(refused, answer.took)
			}
		}
	}
	for _, answer := range health {
		if answer.status != 200 {
			return report{}, fmt.Errorf("a health check returned %d", answer.status)
		}
		healthy = append(healthy, answer.took)
	}
	return report{
		Sent:     float64(len(done)+len(refused)) / hold.Seconds(),
		Answered: float64(len(done)) / hold.Seconds(),
		Done:     summarizeTimes(done),
		Refused:  summarizeTimes(refused),
		Health:   summarizeTimes(healthy),
	}, nil
}

func summarizeTimes(times []time.Duration) latencies {
	sort.Slice(times, func(a, b int) bool { return times[a] < times[b] })
	at := func(part float64) float64 {
		if len(times) == 0 {
			return 0
		}
		return float64(times[int(part*float64(len(times)-1))].Microseconds()) / 1000
	}
	return latencies{len(times), at(0.5), at(0.99), at(1)}
}
