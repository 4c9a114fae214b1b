package main

import (
	"context"
	"errors"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "keyhold.test/example/gen/keyhold/v2alpha1"
)

// verifyStream sends verifications over one stream of StreamVerify. Goroutines may share it. When the stream ends, as when the server
// stops, every call returns the error: open another one.
type verifyStream struct {
	stream  grpc.BidiStreamingClient[pb.StreamVerifyRequest, pb.StreamVerifyResponse]
	mu      sync.Mutex
	lastID  uint32
	waiting map[uint32]chan *pb.StreamVerifyResponse
	err     error
}

// openStream opens a stream, which ends with the context.
func openStream(ctx context.Context, keys pb.ApiKeysServiceClient) (*verifyStream, error) {
	stream, err := keys.StreamVerify(ctx)
	if err != nil {
		return nil, err
	}
	s := &verifyStream{stream: stream, waiting: map[uint32]chan *pb.StreamVerifyResponse{}}
	go s.receive()
	return s, nil
}

// verify returns what VerifyApiKey would return.
func (s *verifyStream) verify(ctx context.Context, request *pb.VerifyApiKeyRequest) (*pb.VerifyApiKeyResponse, error) {
	id, answered, err := s.send(request)
	if err != nil {
		return nil, err
	}
	select {
	case answer, isAnswered := <-answered:
		if !isAnswered {
			return nil, s.err
		}
		if failure := answer.GetError(); failure != nil {
			return nil, status.Error(codes.Code(failure.Code), failure.Message)
		}
		return answer.GetResponse(), nil
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.waiting, id)
		return nil, ctx.Err()
	}
}

func (s *verifyStream) send(request *pb.VerifyApiKeyRequest) (uint32, <-chan *pb.StreamVerifyResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, nil, s.err
	}
	s.lastID++
	answered := make(chan *pb.StreamVerifyResponse, 1)
	s.waiting[s.lastID] = answered
	// The error of a broken stream is that of Recv.
	s.stream.Send(&pb.StreamVerifyRequest{Id: s.lastID, Request: request})
	return s.lastID, answered, nil
}

func (s *verifyStream) receive() {
	for {
		answer, err := s.stream.Recv()
		s.mu.Lock()
		if err != nil {
			s.err = errors.Join(errors.New("the stream has ended"), err)
			for _, answered := range s.waiting {
				close(answered)
			}
			s.mu.Unlock()
			return
		}
		if answered := s.waiting[answer.Id]; answered != nil {
			answered <- answer
			delete(s.waiting, answer.Id)
		}
		s.mu.Unlock()
	}
}
