package scenario

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

const (
	// maxAnswer is how much of an answer is looked at, in bytes: Envoy's whole
	// configuration with a thousand endpoints fits.
	maxAnswer = 8 << 20
	// maxExcerpt is how much of an answer an error shows, in bytes.
	maxExcerpt = 200
)

// Send sends a request and returns the answer's text. An answer other than 200
// is an error.
func Send(ctx context.Context, dial DialFunc, method, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", errors.New(resp.Status)
	}
	return string(body), nil
}

// Look says which of the texts that an answer must have it lacks, and which it
// has that it must not.
func CheckAnswer(answer string, has, lacks []string) error {
	var errs []error
	for _, text := range has {
		if !strings.Contains(answer, text) {
			errs = append(errs, fmt.Errorf("the answer lacks %q: %s", text, excerpt(answer)))
		}
	}
	for _, text := range lacks {
		if i := strings.Index(answer, text); i >= 0 {
			errs = append(errs, fmt.Errorf("the answer has %q: %s", text, excerpt(answer[i:])))
		}
	}
	return errors.Join(errs...)
}

// excerpt is the beginning of an answer, for an error.
func excerpt(text string) string { return text[:min(len(text), maxExcerpt)] }
