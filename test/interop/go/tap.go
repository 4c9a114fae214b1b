package main

import (
	"fmt"
	"strings"
)

// step is a condition that must hold. If it does not, the remaining steps of its topic, which depend on it, are skipped.
type step func(name string, holds bool, otherwise ...any)

// report prints TAP version 14 (testanything.org).
type report struct {
	count, failed int
}

// broken ends a topic.
type broken struct{}

func (r *report) topic(topic string, body func(step)) {
	defer func() {
		switch problem := recover(); problem {
		case nil, broken{}:
		default:
			r.line(false, topic, fmt.Sprint(problem))
		}
	}()
	body(func(name string, holds bool, otherwise ...any) {
		r.line(holds, topic+": "+name, fmt.Sprint(otherwise...))
		if !holds {
			panic(broken{})
		}
	})
}

func (r *report) line(holds bool, name, otherwise string) {
	r.count++
	if holds {
		fmt.Printf("ok %d - %s\n", r.count, name)
		return
	}
	r.failed++
	fmt.Printf("not ok %d - %s\n  # %s\n", r.count, name, strings.ReplaceAll(otherwise, "\n", " "))
}

// end prints the plan and returns the exit status.
func (r *report) end() int {
	fmt.Printf("1..%d\n", r.count)
	return min(r.failed, 1)
}

// must returns the value of a call that must succeed.
func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
