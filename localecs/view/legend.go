package view

// legend says what everything means.
func (p *page) legend() {
	p.addf("<section class=\"legend\"><h2>Legend</h2><ul>\n")
	bar := func(class string, height float64, text string) {
		s := NewSheet(38)
		s.Rect(3, 8-height/2, 32, height, "s "+class, "")
		p.addf("<li>%s%s</li>\n", s.SVG("key", text), esc(text))
	}
	bar(string(LaneWaiting), 3, "image is there, waits to start")
	bar(string(LaneUnknown), barHeight, "runs, health UNKNOWN; a task that starts")
	bar(string(LaneUp), barHeight, "runs, has no health check")
	bar(string(LaneHealthy), barHeight, "HEALTHY, passing, in traffic")
	bar(string(LaneWarning), barHeight, "a check warns")
	bar(string(LaneUnhealthy), barHeight, "UNHEALTHY, critical")
	bar(string(LaneOut), 3, "task runs, Consul sends it nothing")
	bar(string(LaneHealthy), barHeight/2, "half as high: after TERM")
	bar(string(LaneHeld), barHeight/2, "Consul token, login to logout")
	bar("answered", barHeight, "requests answered")
	bar("lost", barHeight, "requests lost")
	bar("step", barHeight, "step, number in the table")
	bar("fault", barHeight, "fault")
	bar("cut", 16, "// nothing changed, cut short")
	for _, m := range []struct {
		glyph Glyph
		text  string
	}{
		{GlyphTerm, "TERM: asked to stop"}, {GlyphKill, "KILL"}, {GlyphAgain, "restart policy started it again"},
		{GlyphExit, "ended, exit 0"}, {GlyphBadExit, "ended otherwise, or never ran"}, {GlyphSick, "a container turned UNHEALTHY"},
	} {
		s := NewSheet(38)
		s.Path(19, 10, shapes(m.glyph), "m "+string(m.glyph), "")
		s.Rect(0, 19, 0, 0, "none", "")
		p.addf("<li>%s%s</li>\n", s.SVG("key", m.text), esc(m.text))
	}
	p.addf("</ul><p>Everything is measured; a pointer that rests on a mark shows its exact time. Log-outs are seen some 0.2 s late. An answer counts for a task when it has the task's ID, address or host name in it.</p></section>\n")
}
