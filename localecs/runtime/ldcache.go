package runtime

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// The current format of /etc/ld.so.cache (glibc 2.2 and later): a header, then
// entries, then the strings they point to. Older glibc puts an old-format
// cache in front, so the magic is searched for.
const (
	cacheMagic      = "glibc-ld.so.cache1.1"
	cacheHeaderSize = 48
	cacheEntrySize  = 24
)

var errCache = errors.New("ld.so.cache: unknown format")

// parseCache returns the paths by library name, in the cache's order. Entries
// for particular processor features are left out: the plain one always exists.
func parseCache(b []byte) (map[string][]string, error) {
	start := bytes.Index(b, []byte(cacheMagic))
	if start < 0 || len(b)-start < cacheHeaderSize {
		return nil, errCache
	}
	b = b[start:]
	order := binary.NativeEndian
	count := uint64(order.Uint32(b[len(cacheMagic):]))
	if cacheHeaderSize+count*cacheEntrySize > uint64(len(b)) {
		return nil, errCache
	}
	paths := map[string][]string{}
	for i := range count {
		entry := b[cacheHeaderSize+i*cacheEntrySize:]
		name, ok := cString(b, order.Uint32(entry[4:]))
		path, ok2 := cString(b, order.Uint32(entry[8:]))
		if !ok || !ok2 {
			return nil, errCache
		}
		if order.Uint64(entry[16:]) == 0 {
			paths[name] = append(paths[name], path)
		}
	}
	return paths, nil
}

func cString(b []byte, offset uint32) (string, bool) {
	if uint64(offset) >= uint64(len(b)) {
		return "", false
	}
	s, _, ok := bytes.Cut(b[offset:], []byte{0})
	return string(s), ok
}
