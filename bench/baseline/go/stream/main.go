// Verifies credentials over streams of StreamVerify, or by unary calls, with grpc-go, and prints the verifications per second.
//
//go:generate go generate ..
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pb "keyhold/bench/baseline/gen/keyhold/v2alpha1"
)

// unanswered is the number of requests of a stream in flight.
const unanswered = 512

// verify keeps a stream of its own connection busy until the end, and returns the number of verdicts.
func verify(address string, credentials []string, end time.Time) (int, error) {
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return 0, err
	}
	defer connection.Close()
	stream, err := pb.NewApiKeysServiceClient(connection).StreamVerify(context.Background())
	if err != nil {
		return 0, err
	}
	slots := make(chan struct{}, unanswered)
	// Streams that begin with the same credential would verify the same ones at the same time.
	start := rand.IntN(len(credentials))
	go func() {
		for id := 1; time.Now().Before(end); id++ {
			slots <- struct{}{}
			request := &pb.VerifyApiKeyRequest{Credential: credentials[(start+id)%len(credentials)]}
			// The receiver gets the error of a broken stream.
			if stream.Send(&pb.StreamVerifyRequest{Id: uint32(id), Request: request}) != nil {
				return
			}
		}
		stream.CloseSend()
	}()
	for verdicts := 0; ; verdicts++ {
		answer, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return verdicts, nil
		}
		if err != nil {
			return verdicts, err
		}
		if !answer.GetResponse().GetIsValid() {
			return verdicts, fmt.Errorf("not valid: %v", answer)
		}
		<-slots
	}
}

func readLines(name string) ([]string, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var lines []string
	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		lines = append(lines, scanner.Text())
	}
	return lines, nil
}

func main() {
	address := flag.String("address", "", "host and port of the server")
	file := flag.String("credentials", "", "file with a valid credential per line")
	streams := flag.Int("streams", 1, "concurrent streams, each with a connection of its own")
	unary := flag.Bool("unary", false, "make unary calls in place of each stream")
	duration := flag.Duration("duration", time.Second, "duration")
	flag.Parse()
	credentials, err := readLines(*file)
	if err != nil {
		log.Fatal(err)
	}
	work := verify
	if *unary {
		work = verifyUnary
	}
	begin := time.Now()
	counts := make([]int, *streams)
	var all sync.WaitGroup
	for i := range counts {
		all.Go(func() {
			count, err := work(*address, credentials, begin.Add(*duration))
			if err != nil {
				log.Fatal(err)
			}
			counts[i] = count
		})
	}
	all.Wait()
	total := 0
	for _, count := range counts {
		total += count
	}
	fmt.Println(float64(total) / time.Since(begin).Seconds())
}
