// Checks a copy of an audit log in the form of C2SP tlog-tiles with other implementations: Go's checksum database and Tessera's fsck.
//
// The arguments are the checker (sumdb or fsck), the URL of the copy, and the verifier key of the log.
package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/transparency-dev/tessera/client"
	"github.com/transparency-dev/tessera/fsck"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// resources is more than a copy has. After an error, fsck waits for ever for room in a queue of this length.
const resources = 64

func main() {
	checkers := map[string]func(string, note.Verifier) error{"sumdb": sumdb, "fsck": tessera}
	verifier, err := note.NewVerifier(os.Args[3])
	if err == nil {
		err = checkers[os.Args[1]](os.Args[2], verifier)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// tessera checks entry bundles, all tiles, and the root.
func tessera(address string, verifier note.Verifier) error {
	root, err := url.Parse(address)
	if err != nil {
		return err
	}
	fetcher, err := client.NewHTTPFetcher(root, nil)
	if err != nil {
		return err
	}
	check := fsck.New(verifier.Name(), verifier, fetcher, leafHashes, fsck.Opts{N: resources})
	return check.Check(context.Background())
}

// sumdb checks the signature, and each entry by the tiles that lead from it to the root.
func sumdb(address string, verifier note.Verifier) error {
	checkpoint, err := get(address + "checkpoint")
	if err != nil {
		return err
	}
	signed, err := note.Open(checkpoint, note.VerifierList(verifier))
	if err != nil {
		return err
	}
	// The form of the checksum database, but for the first line, which is the origin here.
	origin, rest, _ := strings.Cut(signed.Text, "\n")
	if origin != verifier.Name() {
		return errors.New("another origin: " + origin)
	}
	tree, err := tlog.ParseTree([]byte("go.sum database tree\n" + rest))
	if err != nil {
		return err
	}
	hashes := tlog.TileHashReader(tree, tiles(address))
	for start := int64(0); start < tree.N; start += 256 {
		width := min(tree.N-start, 256)
		bundle, err := get(address + strings.Replace(pathOf(tlog.Tile{H: 8, L: 0, N: start / 256, W: int(width)}), "tile/0/", "tile/entries/", 1))
		if err != nil {
			return err
		}
		leaves, err := leafHashes(bundle)
		if err != nil {
			return err
		}
		if int64(len(leaves)) != width {
			return fmt.Errorf("the bundle of entry %d has %d entries instead of %d", start, len(leaves), width)
		}
		indexes := make([]int64, width)
		for place := range indexes {
			indexes[place] = tlog.StoredHashIndex(0, start+int64(place))
		}
		expected, err := hashes.ReadHashes(indexes)
		if err != nil {
			return err
		}
		for place, leaf := range leaves {
			if !bytes.Equal(leaf, expected[place][:]) {
				return fmt.Errorf("entry %d does not have the hash that the tree has", start+int64(place))
			}
		}
	}
	return nil
}

// tiles reads tiles at an address.
type tiles string

func (address tiles) Height() int                         { return 8 }
func (address tiles) SaveTiles(_ []tlog.Tile, _ [][]byte) {}

func (address tiles) ReadTiles(wanted []tlog.Tile) ([][]byte, error) {
	all := make([][]byte, len(wanted))
	for place, tile := range wanted {
		data, err := get(string(address) + pathOf(tile))
		if err != nil {
			return nil, err
		}
		all[place] = data
	}
	return all, nil
}

// pathOf returns the path by tlog-tiles, which has no height.
func pathOf(tile tlog.Tile) string {
	return strings.Replace(tile.Path(), "tile/8/", "tile/", 1)
}

// leafHashes returns the hashes of the entries of a bundle.
func leafHashes(bundle []byte) ([][]byte, error) {
	var hashes [][]byte
	for len(bundle) > 0 {
		if len(bundle) < 2 || len(bundle) < 2+int(binary.BigEndian.Uint16(bundle)) {
			return nil, errors.New("the bundle ends within an entry")
		}
		end := 2 + int(binary.BigEndian.Uint16(bundle))
		hash := tlog.RecordHash(bundle[2:end])
		hashes = append(hashes, hash[:])
		bundle = bundle[end:]
	}
	return hashes, nil
}

func get(address string) ([]byte, error) {
	response, err := http.Get(address)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", address, response.Status)
	}
	return io.ReadAll(response.Body)
}
