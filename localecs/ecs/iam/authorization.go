package iam

import (
	"fmt"
	"slices"
	"strings"
)

const (
	algorithm  = "AWS4-HMAC-SHA256"
	terminator = "aws4_request"
)

type authorization struct {
	keyID, date, region, service string
	// signedHeaders are lower case, in the order of the header.
	signedHeaders []string
	signature     string
}

func (a authorization) signs(name string) bool {
	return slices.Contains(a.signedHeaders, name)
}

// parseAuthorization parses "AWS4-HMAC-SHA256 Credential=<key>/<yyyymmdd>/
// <region>/<service>/aws4_request, SignedHeaders=a;b, Signature=<hex>". It
// checks the form only.
func parseAuthorization(header string) (authorization, *Error) {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(header), " ")
	if scheme != algorithm {
		return authorization{}, incomplete("Unsupported AWS 'algorithm': '%s'.", scheme)
	}
	fields := map[string]string{}
	for part := range strings.SplitSeq(rest, ",") {
		part = strings.TrimSpace(part)
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return authorization{}, incomplete("'%s' not a valid key=value pair (missing equal-sign) in "+
				"Authorization header: '%s'.", part, header)
		}
		if _, twice := fields[name]; twice {
			return authorization{}, incomplete("Authorization header has parameter '%s' more than once.", name)
		}
		fields[name] = value
	}
	for _, name := range []string{"Credential", "SignedHeaders", "Signature"} {
		if fields[name] == "" {
			return authorization{}, incomplete("Authorization header requires '%s' parameter. Authorization=%s", name,
				header)
		}
	}
	scope := strings.Split(fields["Credential"], "/")
	if len(scope) != 5 {
		return authorization{}, incomplete("Credential must have exactly 5 slash-delimited elements, e.g. "+
			"keyid/date/region/service/term, got '%s'", fields["Credential"])
	}
	if scope[4] != terminator {
		return authorization{}, mismatch("Credential should be scoped with a valid terminator: '%s', not '%s'.",
			terminator, scope[4])
	}
	return authorization{
		keyID: scope[0], date: scope[1], region: scope[2], service: scope[3],
		signedHeaders: strings.Split(fields["SignedHeaders"], ";"),
		signature:     fields["Signature"],
	}, nil
}

func incomplete(format string, args ...any) *Error {
	return &Error{Status: 400, Code: "IncompleteSignature", Message: fmt.Sprintf(format, args...)}
}

func mismatch(format string, args ...any) *Error {
	return &Error{Status: 403, Code: "SignatureDoesNotMatch", Message: fmt.Sprintf(format, args...)}
}
