package picture

import (
	"github.com/meshtask/consul-ecs/localecs/picture/lane"
	"github.com/meshtask/consul-ecs/localecs/picture/sheet"
)

// legend says what everything means.
func (p *page) legend() {
	p.addf("<section class=\"legend\"><h2>Legend</h2><ul>\n")
	bar := func(class string, height float64, text string) {
		s := sheet.New(38)
		s.Rect(3, 8-height/2, 32, height, "s "+class, "")
		p.addf("<li>%s%s</li>\n", s.SVG("key", text), esc(text))
	}
	bar(string(lane.Waiting), 3, "image is there, waits to start")
	bar(string(lane.Unknown), barHeight, "runs, health UNKNOWN; a task that starts")
	bar(string(lane.Up), barHeight, "runs, has no health check")
	bar(string(lane.Healthy), barHeight, "HEALTHY, passing, in traffic")
	bar(string(lane.Warning), barHeight, "a check warns")
	bar(string(lane.Unhealthy), barHeight, "UNHEALTHY, critical")
	bar(string(lane.Out), 3, "task runs, Consul sends it nothing")
	bar(string(lane.Healthy), barHeight/2, "half as high: after TERM")
	bar(string(lane.Held), barHeight/2, "Consul token, log-in to log-out")
	bar("answered", barHeight, "requests answered")
	bar("lost", barHeight, "requests lost")
	bar("step", barHeight, "step, number in the table")
	bar("fault", barHeight, "fault")
	bar("cut", 16, "// nothing changed, cut short")
	for _, m := range []struct {
		glyph lane.Glyph
		text  string
	}{
		{lane.Term, "TERM: asked to stop"}, {lane.Kill, "KILL"}, {lane.Again, "restart policy started it again"},
		{lane.Exit, "ended, exit 0"}, {lane.BadExit, "ended otherwise, or never ran"}, {lane.Sick, "a container turned UNHEALTHY"},
	} {
		s := sheet.New(38)
		s.Path(19, 10, shapes(m.glyph), "m "+string(m.glyph), "")
		s.Rect(0, 19, 0, 0, "none", "")
		p.addf("<li>%s%s</li>\n", s.SVG("key", m.text), esc(m.text))
	}
	p.addf("</ul><p>Everything is measured; a pointer that rests on a mark shows its exact time. Log-outs are seen some 0.2 s late. An answer counts for a task when it has the task's ID, address or host name in it.</p></section>\n")
}
