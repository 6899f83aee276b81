package relay

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	wire "github.com/miekg/dns"
)

// dnsQuery returns a query as a client sends it; size is that of EDNS, 0 for none.
func dnsQuery(t testing.TB, name string, kind, size uint16) []byte {
	t.Helper()
	m := new(wire.Msg).SetQuestion(name, kind)
	if size > 0 {
		m.SetEdns0(size, false)
	}
	return pack(t, m)
}

func pack(t testing.TB, m *wire.Msg) []byte {
	t.Helper()
	message, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return message
}

func unpack(t testing.TB, message []byte) *wire.Msg {
	t.Helper()
	m := new(wire.Msg)
	if err := m.Unpack(message); err != nil {
		t.Fatalf("unpack %q: %v", message, err)
	}
	return m
}

// parsed returns a query over UDP.
func parsed(t testing.TB, message []byte) query {
	t.Helper()
	q, err := parseQuery(message, true)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// replyTo answers a query with these records.
func replyTo(t testing.TB, query []byte, code int, records ...string) []byte {
	t.Helper()
	m := new(wire.Msg).SetRcode(unpack(t, query), code)
	m.Compress = true
	for _, record := range records {
		rr, err := wire.NewRR(record)
		if err != nil {
			t.Fatal(err)
		}
		m.Answer = append(m.Answer, rr)
	}
	return pack(t, m)
}

func TestQueriesOfTheSameQuestion(t *testing.T) {
	t.Parallel()
	first := parsed(t, dnsQuery(t, "api.virtual.consul.", wire.TypeA, 1232))
	if q := parsed(t, dnsQuery(t, "API.Virtual.Consul.", wire.TypeA, 1232)); q.question != first.question {
		t.Errorf("the case of letters counts: %+v, %+v", q.question, first.question)
	}
	for what, other := range map[string][]byte{
		"another name": dnsQuery(t, "web.virtual.consul.", wire.TypeA, 1232),
		"another type": dnsQuery(t, "api.virtual.consul.", wire.TypeAAAA, 1232),
		"another size": dnsQuery(t, "api.virtual.consul.", wire.TypeA, 4096),
		"no EDNS":      dnsQuery(t, "api.virtual.consul.", wire.TypeA, 0),
		"no recursion": pack(t, &wire.Msg{Question: unpack(t, first.message).Question}),
		"signatures":   pack(t, unpack(t, dnsQuery(t, "api.virtual.consul.", wire.TypeA, 0)).SetEdns0(1232, true)),
		"checks disabled": pack(t, func() *wire.Msg {
			m := unpack(t, first.message)
			m.CheckingDisabled = true
			return m
		}()),
	} {
		if q := parsed(t, other); q.question == first.question {
			t.Errorf("%s: is taken for the same question: %+v", what, q.question)
		}
	}
	tcp, err := parseQuery(first.message, false)
	if err != nil || tcp.question == first.question {
		t.Errorf("over TCP: %v, is taken for the same question", err)
	}
}

func TestMessagesThatAreNoQueries(t *testing.T) {
	t.Parallel()
	query := dnsQuery(t, "api.virtual.consul.", wire.TypeA, 1232)
	two := unpack(t, query)
	two.Question = append(two.Question, two.Question[0])
	none := unpack(t, query)
	none.Question = nil
	for what, c := range map[string]struct {
		message []byte
		want    error
	}{
		"nothing":              {nil, errNoQuery},
		"half a header":        {query[:11], errNoQuery},
		"an answer":            {replyTo(t, query, wire.RcodeSuccess), errNoQuery},
		"half a name":          {query[:20], errMalformed},
		"no question":          {pack(t, none), errMalformed},
		"two questions":        {pack(t, two), errMalformed},
		"half of EDNS":         {query[:len(query)-3], errMalformed},
		"half of an option":    {append(bytes.Clone(query[:len(query)-1]), 3, 0, 10, 9), errMalformed},
		"a record too few":     {append(bytes.Clone(query[:7]), append([]byte{9}, query[8:]...)...), errMalformed},
		"an authority":         {append(bytes.Clone(query[:9]), append([]byte{9}, query[10:]...)...), errMalformed},
		"a name without bound": {append(bytes.Clone(query[:12]), 0xc0, 12, 0, 1, 0, 1), errMalformed},
	} {
		if _, err := parseQuery(c.message, true); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", what, err, c.want)
		}
	}
}

func TestRefusalsHaveTheQuestion(t *testing.T) {
	t.Parallel()
	for _, size := range []uint16{0, 1232} {
		message := dnsQuery(t, "Api.virtual.consul.", wire.TypeA, size)
		asked := unpack(t, message)
		got := unpack(t, parsed(t, message).refuse(2))
		switch {
		case got.Id != asked.Id:
			t.Errorf("ID %d, want %d", got.Id, asked.Id)
		case !got.Response:
			t.Error("is no response")
		case got.Rcode != wire.RcodeServerFailure:
			t.Errorf("code %d", got.Rcode)
		case !got.RecursionDesired:
			t.Error("the recursion that was desired is missing")
		case len(got.Question) != 1 || got.Question[0].Name != "Api.virtual.consul.":
			t.Errorf("question %v", got.Question)
		case (got.IsEdns0() != nil) != (size > 0):
			t.Errorf("EDNS %v for a size of %d", got.IsEdns0(), size)
		}
	}
}

func TestLongAnswersAreTruncated(t *testing.T) {
	t.Parallel()
	var records []string
	for range 40 { // 16 bytes each
		records = append(records, "api.service.consul. 0 IN A 10.0.0.1")
	}
	for _, c := range []struct {
		size      uint16
		udp, want bool
	}{
		{0, true, true},
		{100, true, true},
		{600, true, true},
		{1232, true, false},
		{0, false, false},
	} {
		message := dnsQuery(t, "api.service.consul.", wire.TypeA, c.size)
		q, err := parseQuery(message, c.udp)
		if err != nil {
			t.Fatal(err)
		}
		long := replyTo(t, message, wire.RcodeSuccess, records...)
		got := q.fit(long, 0)
		if truncated := unpack(t, got).Truncated; truncated != c.want {
			t.Errorf("%+v: truncated is %v", c, truncated)
		}
		if most := int(max(c.size, 512)); c.udp && len(got) > most {
			t.Errorf("%+v: %d bytes, more than %d", c, len(got), most)
		}
	}
}

func TestRepliesThatAreNoAnswers(t *testing.T) {
	t.Parallel()
	message := dnsQuery(t, "api.virtual.consul.", wire.TypeA, 0)
	q := parsed(t, message)
	edit := func(change func(*wire.Msg)) []byte {
		m := unpack(t, replyTo(t, message, wire.RcodeSuccess, "api.virtual.consul. 0 IN A 240.0.0.1"))
		change(m)
		return pack(t, m)
	}
	for what, reply := range map[string][]byte{
		"nothing":          nil,
		"half a header":    message[:11],
		"the query":        message,
		"another ID":       edit(func(m *wire.Msg) { m.Id++ }),
		"another name":     edit(func(m *wire.Msg) { m.Question[0].Name = "web.virtual.consul." }),
		"another type":     edit(func(m *wire.Msg) { m.Question[0].Qtype = wire.TypeAAAA }),
		"no question":      edit(func(m *wire.Msg) { m.Question = nil }),
		"half a question":  replyTo(t, message, wire.RcodeSuccess)[:14],
		"more than 64 KiB": append(edit(func(*wire.Msg) {}), make([]byte, 1<<16)...),
	} {
		if code, err := q.check(reply); err == nil {
			t.Errorf("%s: is taken for an answer, code %d", what, code)
		}
	}
	for what, reply := range map[string][]byte{
		"an answer":    edit(func(*wire.Msg) {}),
		"another case": edit(func(m *wire.Msg) { m.Question[0].Name = "API.virtual.consul." }),
		"a refusal without a question": edit(func(m *wire.Msg) {
			m.Question, m.Answer, m.Rcode = nil, nil, wire.RcodeRefused
		}),
	} {
		if _, err := q.check(reply); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestRepeatedAnswersAreForTheQuery: with its ID and spelling, and asked again soon.
func TestRepeatedAnswersAreForTheQuery(t *testing.T) {
	t.Parallel()
	first := dnsQuery(t, "api.service.consul.", wire.TypeSRV, 1232)
	m := unpack(t, replyTo(t, first, wire.RcodeSuccess,
		"api.service.consul. 60 IN SRV 1 1 8080 n1.node.consul.",
		"api.service.consul. 3 IN SRV 1 1 8080 n2.node.consul.",
		"api.service.consul. 60 IN TYPE999 \\# 2 0102"))
	m.SetEdns0(1232, true)
	second := parsed(t, dnsQuery(t, "API.service.consul.", wire.TypeSRV, 1232))
	message, err := second.repeat(pack(t, m))
	if err != nil {
		t.Fatal(err)
	}
	got := unpack(t, message)
	if got.Id != second.id {
		t.Errorf("ID %d, want %d", got.Id, second.id)
	}
	if name := got.Question[0].Name; name != "API.service.consul." {
		t.Errorf("question %s", name)
	}
	var records []string
	for _, rr := range got.Answer {
		records = append(records, strings.ReplaceAll(rr.String(), "\t", " "))
	}
	const want = "api.service.consul. 5 IN SRV 1 1 8080 n1.node.consul.\n" +
		"api.service.consul. 3 IN SRV 1 1 8080 n2.node.consul.\n" +
		"api.service.consul. 5 CLASS1 TYPE999 \\# 2 0102"
	if text := strings.Join(records, "\n"); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	if opt := got.IsEdns0(); opt == nil || !opt.Do() {
		t.Errorf("EDNS %v, want its flags as they were", opt)
	}
	if _, err := second.repeat(message[:len(message)-3]); err == nil {
		t.Error("half an answer is repeated")
	}
}

// FuzzDNSQuery: any query that can be read can be refused, with its own question.
func FuzzDNSQuery(f *testing.F) {
	f.Add(dnsQuery(f, "api.virtual.consul.", wire.TypeA, 0), true)
	f.Add(dnsQuery(f, "1.0.0.10.in-addr.arpa.", wire.TypePTR, 1232), false)
	f.Add(append(dnsQuery(f, "api.virtual.consul.", wire.TypeA, 0)[:12], 0xc0, 12, 0, 1, 0, 1), true)
	f.Fuzz(func(t *testing.T, message []byte, udp bool) {
		q, err := parseQuery(message, udp)
		if err != nil {
			return
		}
		refusal := q.refuse(2)
		if len(refusal) > q.most() {
			t.Errorf("the refusal has %d bytes, more than %d", len(refusal), q.most())
		}
		if _, err := q.check(refusal); err != nil {
			t.Errorf("the refusal %q is no answer to %q: %v", refusal, message, err)
		}
	})
}

// FuzzDNSReply: what is given again is an answer to the query, no longer than the client takes.
func FuzzDNSReply(f *testing.F) {
	query := dnsQuery(f, "api.virtual.consul.", wire.TypeA, 0)
	f.Add(replyTo(f, query, wire.RcodeSuccess, "api.virtual.consul. 0 IN A 240.0.0.1"))
	f.Add(replyTo(f, query, wire.RcodeNameError))
	f.Add(replyTo(f, query, wire.RcodeSuccess, "api.virtual.consul. 9 IN TXT abc",
		"api.virtual.consul. 9 IN MX 1 a.consul."))
	f.Fuzz(func(t *testing.T, reply []byte) {
		q := parsed(t, query)
		if _, err := q.check(reply); err != nil {
			return
		}
		again, err := q.repeat(reply)
		if err != nil {
			return
		}
		if len(again) > q.most() {
			t.Errorf("it has %d bytes, more than %d", len(again), q.most())
		}
		if _, err := q.check(again); err != nil {
			t.Errorf("it is no answer: %v", err)
		}
	})
}
