package relay

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	// plainSize is the length of the longest answer over UDP for a client that states none.
	plainSize = 512
	// mostSize is the length of the longest message.
	mostSize = 1<<16 - 1
	// headerSize is the length of a message's header.
	headerSize = 12
	// rememberedTTL bounds how long clients keep an answer from the memory: they ask again
	// soon after the outage.
	rememberedTTL = 5 * time.Second
)

var (
	// errNoQuery is of a message that gets no answer.
	errNoQuery = errors.New("the message is no DNS query")
	// errMalformed is of a query that cannot be read.
	errMalformed = errors.New("the DNS query is malformed")
)

// question is what the answer to a query depends on, as far as this package knows.
type question struct {
	// name is in lower case.
	name  string
	kind  dnsmessage.Type
	class dnsmessage.Class
	udp   bool
	// size is the length of the longest answer over UDP that the client takes; 0 if it does
	// not state one.
	size                         uint16
	recursion, unchecked, dnssec bool
}

// query is a client's query.
type query struct {
	question
	id uint16
	// asked is the question with the client's spelling of the name.
	asked dnsmessage.Question
	// message is the query as it came.
	message []byte
}

// parseQuery reads a query. With errMalformed the query has an ID, by which to refuse it.
func parseQuery(message []byte, udp bool) (query, error) {
	q := query{message: message}
	q.udp = udp
	if len(message) < headerSize {
		return q, errNoQuery
	}
	q.id = binary.BigEndian.Uint16(message)
	var p dnsmessage.Parser
	header, err := p.Start(message)
	if err != nil || header.Response {
		return q, errNoQuery
	}
	q.recursion, q.unchecked = header.RecursionDesired, header.CheckingDisabled
	if q.asked, err = p.Question(); err != nil {
		return q, fmt.Errorf("%w: %w", errMalformed, err)
	}
	q.name, q.kind, q.class = strings.ToLower(q.asked.Name.String()), q.asked.Type, q.asked.Class
	if _, err := p.Question(); !errors.Is(err, dnsmessage.ErrSectionDone) {
		return q, fmt.Errorf("%w: it has more than one question", errMalformed)
	}
	return q, q.readExtension(&p)
}

// readExtension reads what the client states by EDNS.
func (q *query) readExtension(p *dnsmessage.Parser) error {
	if err := errors.Join(p.SkipAllAnswers(), p.SkipAllAuthorities()); err != nil {
		return fmt.Errorf("%w: %w", errMalformed, err)
	}
	for {
		header, err := p.AdditionalHeader()
		if errors.Is(err, dnsmessage.ErrSectionDone) {
			return nil
		}
		switch {
		case err != nil:
		case header.Type == dnsmessage.TypeOPT: // which servers read
			_, err = p.OPTResource()
		default:
			err = p.SkipAdditional()
		}
		if err != nil {
			return fmt.Errorf("%w: %w", errMalformed, err)
		}
		if header.Type == dnsmessage.TypeOPT {
			q.size, q.dnssec = max(uint16(header.Class), plainSize), header.DNSSECAllowed()
		}
	}
}

// most returns the length of the longest answer.
func (q query) most() int {
	if !q.udp {
		return mostSize
	}
	return int(cmp.Or(q.size, plainSize))
}

// reverse reports whether the name of an address is asked for.
func (q query) reverse() bool {
	return strings.HasSuffix(q.name, ".in-addr.arpa.") || strings.HasSuffix(q.name, ".ip6.arpa.")
}

// refuse returns an answer that has that code, and no records.
func (q query) refuse(code dnsmessage.RCode) []byte {
	return q.empty(dnsmessage.Header{RCode: code})
}

// truncate returns an answer without records, after which a client asks again over TCP.
func (q query) truncate(code dnsmessage.RCode) []byte {
	return q.empty(dnsmessage.Header{RCode: code, Truncated: true})
}

// empty returns an answer without records.
func (q query) empty(h dnsmessage.Header) []byte {
	h.ID, h.Response, h.RecursionDesired = q.id, true, q.recursion
	m := dnsmessage.Message{Header: h}
	if q.asked.Name.Length > 0 {
		m.Questions = []dnsmessage.Question{q.asked}
	}
	if q.size > 0 {
		var extension dnsmessage.ResourceHeader
		// The error is of a code above 12 bits.
		_ = extension.SetEDNS0(int(q.size), h.RCode, q.dnssec)
		m.Additionals = []dnsmessage.Resource{{Header: extension, Body: &dnsmessage.OPTResource{}}}
	}
	message, err := m.Pack()
	if err != nil { // a name that was read can be written
		return nil
	}
	return message
}

// check returns the code of a server's answer, or an error if it is none to the query.
func (q query) check(answer []byte) (dnsmessage.RCode, error) {
	var p dnsmessage.Parser
	header, err := p.Start(answer)
	if err != nil {
		return 0, fmt.Errorf("the DNS answer is malformed: %w", err)
	}
	asked, err := p.Question()
	switch {
	// a refusal need not repeat it
	case errors.Is(err, dnsmessage.ErrSectionDone) && header.RCode != dnsmessage.RCodeSuccess:
		asked = q.asked
	case err != nil:
		return 0, fmt.Errorf("the DNS answer is malformed: %w", err)
	}
	same := strings.EqualFold(asked.Name.String(), q.asked.Name.String()) && asked.Type == q.kind &&
		asked.Class == q.class
	switch {
	case header.ID != q.id || !header.Response || !same:
		return 0, errors.New("the DNS answer is to another query")
	case len(answer) > mostSize:
		return 0, fmt.Errorf("the DNS answer has %d bytes, more than %d", len(answer), mostSize)
	}
	return header.RCode, nil
}

// fit returns the answer, or one that is truncated when it is too long for the client.
func (q query) fit(answer []byte, code dnsmessage.RCode) []byte {
	if len(answer) > q.most() {
		return q.truncate(code)
	}
	return answer
}

// repeat makes an answer to the same question one to this query.
func (q query) repeat(answer []byte) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(answer); err != nil {
		return nil, err
	}
	m.ID, m.Questions = q.id, []dnsmessage.Question{q.asked}
	for _, section := range [][]dnsmessage.Resource{m.Answers, m.Authorities, m.Additionals} {
		for i := range section {
			if h := &section[i].Header; h.Type != dnsmessage.TypeOPT { // which has flags there
				h.TTL = min(h.TTL, uint32(rememberedTTL/time.Second))
			}
		}
	}
	again, err := m.Pack()
	if err != nil {
		return nil, err
	}
	return q.fit(again, m.RCode), nil
}
