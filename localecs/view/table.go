package view

import (
	"fmt"
)

// table begins one behind a line that opens it.
func (p *page) table(title string, columns ...string) {
	p.addf("<details><summary>%s</summary><table><thead><tr>", esc(title))
	for _, c := range columns {
		p.addf("<th scope=\"col\">%s</th>", esc(c))
	}
	p.addf("</tr></thead><tbody>\n")
}

// row adds one; the first so many cells are numbers.
func (p *page) row(numbers int, cells ...string) {
	p.addf("<tr>")
	for i, c := range cells {
		class := ""
		if i < numbers {
			class = " class=\"number\""
		}
		p.addf("<td%s>%s</td>", class, esc(c))
	}
	p.addf("</tr>\n")
}

func (p *page) endTable() { p.addf("</tbody></table></details>\n") }

func (p *page) steps(title string, all []RecordedStep) {
	if len(all) == 0 {
		return
	}
	p.table(fmt.Sprintf("%s (%d)", title, len(all)), "#", "from s", "to s", "took s", "task", "what", "error")
	for i, s := range all {
		p.row(4, fmt.Sprint(i+1), moment(s.From), moment(s.To), moment(s.To-s.From), s.Task, s.Text, s.Error)
	}
	p.endTable()
}

func moment(at float64) string { return fmt.Sprintf("%.3f", at) }

func (p *page) events(title string, all []RecordedEvent) {
	if len(all) == 0 {
		return
	}
	p.table(title, "s", "kind", "container, check or token", "status", "detail")
	for _, e := range all {
		what := e.Container
		switch {
		case e.Check != "":
			what = e.Check + " (" + e.Service + ")"
		case e.Method != "":
			what = e.Method + " " + e.Accessor
		case e.Service != "":
			what = e.Service
		}
		p.row(1, moment(e.At), e.Kind, what, e.Status, e.Detail)
	}
	p.endTable()
}

// tableSeconds is how much of the traffic is in one row.
const tableSeconds = 1.0

func (p *page) requests() {
	r := p.run.Requests
	if r.Peak() == 0 {
		return
	}
	p.table("Requests by second", "from s", "to s", "answered", "lost", "slowest ms")
	each := max(1, int(tableSeconds/r.BucketSeconds+0.5))
	for i := 0; i < len(r.Answered); i += each {
		answered, lost, slowest := 0, 0, 0
		for j := i; j < min(i+each, len(r.Answered)); j++ {
			answered, lost, slowest = answered+r.Answered[j], lost+r.Lost[j], max(slowest, r.SlowestMS[j])
		}
		if answered+lost > 0 {
			p.row(5, moment(float64(i)*r.BucketSeconds), moment(float64(i+each)*r.BucketSeconds), fmt.Sprint(answered), fmt.Sprint(lost), fmt.Sprint(slowest))
		}
	}
	p.endTable()
}
