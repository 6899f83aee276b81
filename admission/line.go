package admission

import (
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/taskdef"
)

// choice is what the label wrap of a container asks for.
type choice int

const (
	choiceNone choice = iota
	choiceWrap
	choiceSkip
)

// line is the command line of a container, without app-entrypoint.
type line struct {
	// entry and command are its words, empty for those that are known at deployment only: those
	// of the definition, and where that has none, those of the image if they are known.
	entry, command []string
	// rest are the nodes of the definition's own entryPoint, and flags those of the user for the
	// app-entrypoint before it.
	flags, rest []*taskdef.Node
	// wrapped is true when app-entrypoint is in entryPoint, inCommand when it is in command.
	wrapped, inCommand bool
	// byHand is true when it is the user who wrote that the command follows app-entrypoint, or
	// emptied the ENTRYPOINT of the image by [""].
	byHand bool
	// record is what an earlier admission wrote from the image.
	record record
	// imageEntry and imageCommand are true when entry and command are the image's, and stop is
	// the image's STOPSIGNAL unless the user has given another.
	imageEntry, imageCommand bool
	// replaced is the image's ENTRYPOINT where the user has chosen that the command is the program.
	replaced []string
	// locked is true when the configuration of the image is in the lock.
	locked bool
	// byImage is the cure that needs no writing, empty without one.
	byImage string
	stop    string
	// runsInit is true when the program is a script that executes s6-overlay's /init, by what is
	// known of its image.
	runsInit bool
	// computed is what is known at deployment only and has to be known, and fix what to do about it.
	computed, fix string
	// ours is true when the command is one of consul-ecs.
	ours   bool
	choice choice
}

// line reads the command line of a container.
func (cs *containers) line(i int) line {
	n := cs.doc.containers()[i]
	entry, command := cs.doc.get(n, "entryPoint"), cs.doc.get(n, "command")
	l := line{entry: texts(entry), command: texts(command), choice: cs.annotations.wrap[cs.doc.containerName(i)]}
	words := wrapperWords(l.entry)
	if l.wrapped = words > 0; l.wrapped {
		l.flags = entry.Items()[2:words]
	}
	l.entry, l.rest = l.entry[words:], entry.Items()[words:]
	l.record = cs.doc.record(n)
	image := l.takeRecorded()
	l.byHand = l.wrapped && len(l.rest) == 0 && !image.known && !(cs.annotations.admitted && onlyOurs(l.flags))
	if len(l.rest) == 1 && string(l.rest[0].JSON()) == `""` {
		l.entry, l.rest, l.byHand = nil, nil, true
	}
	l.inCommand = len(l.rest) == 0 && !l.wrapped && wrapperWords(l.command) > 0
	config, known := cs.images.config(i)
	if known {
		image, l.locked = programOf(config), true
	}
	l.byImage = cs.images.remedy(i)
	if canLabel(cs.doc, n) {
		l.complete(image, isEmpty(command) || cs.doc.isAbsent(n, "command"))
	}
	l.runsInit = runsInit(slices.Concat(l.entry, l.command), cs.doc.text(n, "image"), config)
	l.ours = len(l.command) > 0 && cs.flags != nil && cs.flags(l.command[0]) != nil
	l.computed, l.fix = unknownOf(cs.doc, n, l, image)
	return l
}

// program is what an image executes.
type program struct {
	known          bool
	entry, command []string
	stop           string
}

// programOf returns what an image executes by its configuration. Of an ENTRYPOINT that is one
// empty word, Docker runs the command alone.
func programOf(config taskdef.ImageConfig) program {
	p := program{known: true, entry: config.Entrypoint, command: config.Cmd, stop: config.StopSignal}
	if slices.Equal(p.entry, []string{""}) {
		p.entry = nil
	}
	return p
}

// takeRecorded takes what an earlier admission wrote from the image out of the line, and returns it.
func (l *line) takeRecorded() program {
	var image program
	l.record.command = l.record.command && l.record.entryPoint // the CMD of an image goes with its ENTRYPOINT
	if l.record.entryPoint {
		image.known, image.entry = true, l.entry
		l.entry, l.rest = nil, nil
	}
	if l.record.command {
		image.command, l.command = l.command, nil
	}
	if l.record.stopSignal {
		l.flags, image.stop = withoutFlag(l.flags, stopSignalFlag)
	}
	return image
}

// complete adds what the image gives by Docker's rules: its ENTRYPOINT where the definition has
// none, its CMD where it has neither, and its STOPSIGNAL. The user may have written that the
// command is the program.
func (l *line) complete(image program, noCommand bool) {
	if _, given := withoutFlag(l.flags, stopSignalFlag); given == "" {
		l.stop = image.stop
	}
	chosen := len(l.command) > 0 && (l.byHand || l.choice == choiceWrap)
	if !image.known || len(l.rest) > 0 || l.inCommand {
		return
	}
	if chosen {
		l.replaced = image.entry
		return
	}
	l.entry, l.imageEntry = image.entry, true
	if noCommand || l.record.command {
		l.command, l.imageCommand = image.command, true
	}
}

// unknownOf returns what of a container is known at deployment only, without which it cannot be
// wrapped, and what to do about it; empty when all is known.
func unknownOf(d *document, n *taskdef.Node, l line, image program) (what, fix string) {
	unlisted := func(key string) bool { return !d.isAbsent(n, key) && !d.get(n, key).IsList() }
	switch noEntry := len(l.entry) == 0; {
	case unlisted("entryPoint"), noEntry && unlisted("command"), noEntry && len(l.command) > 0 && l.command[0] == "":
		return "its command is known at deployment only", "write entryPoint as a list"
	case l.imageEntry && len(image.command) > 0 && mayBeAbsent(d.get(n, "command")):
		return "its command may be absent, and its image has a CMD", "write a command in each branch of Fn::If"
	case !d.isListed(n, "mountPoints") || !d.isListed(n, "dependsOn"):
		return "its mountPoints or dependsOn are known at deployment only", "write them as lists, or as Fn::If of lists"
	}
	return "", ""
}

// stopSignalFlag is the flag of app-entrypoint for an image's STOPSIGNAL.
const stopSignalFlag = "stop-signal"

// withoutFlag returns flags of app-entrypoint without one of them, and its value.
func withoutFlag(flags []*taskdef.Node, name string) (others []*taskdef.Node, value string) {
	for len(flags) > 0 {
		word, _ := flags[0].Text()
		width := min(flagWidth(word), len(flags))
		if key, joined, _ := strings.Cut(strings.TrimLeft(word, "-"), "="); key != name {
			others = append(others, flags[:width]...)
		} else if value = joined; width > 1 {
			value, _ = flags[1].Text()
		}
		flags = flags[width:]
	}
	return others, value
}

// onlyOurs reports whether flags of app-entrypoint are those that admission writes without
// a cause in the definition.
func onlyOurs(flags []*taskdef.Node) bool {
	for _, name := range []string{"await-proxy", "dir", "stop-timeout"} {
		flags, _ = withoutFlag(flags, name)
	}
	return len(flags) == 0
}

// verdict is whether app-entrypoint goes before an application.
type verdict struct {
	wrap bool
	// mark is true when the label wrap has to tell the next admission that the command is
	// the program.
	mark bool
	// code is that of a finding, empty without one, and at the member that it is about.
	code, at, why, fix string
}

// remedy returns the beginning of a cure, which is that the image of a container becomes known. Of
// one in the lock another finding has the cure.
func (l *lockedImages) remedy(i int) string {
	switch _, _, found := l.find(i); {
	case l.lock == nil:
		return "admit it with -images, or "
	case !found:
		return "lock its image, or "
	}
	return ""
}

// labelChoices returns the choices that the label wrap gives for a command of an image that may have an
// ENTRYPOINT.
func (l line) labelChoices() string {
	return l.byImage + "write the image's ENTRYPOINT as entryPoint; if it has none, set the label " + annotationWrap +
		" to true; false leaves the container as it is"
}

// notWrapped returns the verdict of an application that is not wrapped, with its reason and its cure.
func notWrapped(why, fix string) verdict { return verdict{code: codeWrap, why: why, fix: fix} }

// findInit returns the program of the line that must be process 1, as the function of that name
// does, or that of s6-overlay which the image's script executes.
func (l line) findInit() (program string, certain bool) {
	program, certain = findInit(slices.Concat(l.entry, l.command))
	if program == "" && l.runsInit {
		program = "/init"
	}
	return program, certain
}

// decide decides whether app-entrypoint goes before an application: when its program is known,
// and is not one that must be process 1.
func (l line) decide() verdict {
	program, certain := l.findInit()
	const accept = "set the label " + annotationWrap + " to false to accept that"
	switch {
	case l.inCommand:
		return verdict{wrap: true}
	case l.choice == choiceSkip:
		return verdict{}
	case l.computed != "":
		return notWrapped(l.computed, l.fix)
	case len(l.entry) == 0 && len(l.command) == 0 && l.imageEntry:
		return notWrapped("neither it nor its image has a command", "write it as command")
	case len(l.entry) == 0 && len(l.command) == 0:
		return notWrapped("it has neither entryPoint nor command",
			l.byImage+"write the image's ENTRYPOINT as entryPoint and its CMD as command")
	case program != "" && certain:
		return notWrapped(program+" must be process 1 of the container", accept)
	case program != "" && l.choice != choiceWrap:
		return notWrapped("it may execute "+program+", which must be process 1 of the container",
			accept+", or to true if it does not")
	case len(l.entry) > 0:
		return verdict{wrap: true}
	}
	return l.decideCommand()
}

// decideCommand decideCommand decides for a command whose entryPoint is the image's.
func (l line) decideCommand() verdict {
	switch {
	case strings.HasPrefix(l.command[0], "-"):
		return notWrapped("its command is options of its image's ENTRYPOINT",
			l.byImage+"write that ENTRYPOINT as entryPoint")
	case l.imageEntry:
		return verdict{wrap: true}
	case l.ours:
		return notWrapped("its command is one of consul-ecs, its image's ENTRYPOINT",
			l.byImage+"write that ENTRYPOINT as entryPoint")
	case l.choice == choiceWrap || l.byHand && l.wrapped:
		v := verdict{wrap: true, mark: l.choice != choiceWrap}
		if len(l.replaced) > 0 {
			v.code, v.at = codeEntryPoint, ".command"
			v.fix = "remove the label " + annotationWrap +
				" and an app-entrypoint of yours: the image's ENTRYPOINT is written then"
		}
		return v
	case l.byHand:
		return verdict{wrap: true, mark: true}
	case isProgram(l.command[0]):
		return verdict{wrap: true, code: codeEntryPoint, at: ".command", fix: l.labelChoices()}
	case l.wrapped:
		return notWrapped("its command may be arguments of its image's ENTRYPOINT, which an earlier admission replaced",
			l.labelChoices())
	}
	return notWrapped("its command may be arguments of its image's ENTRYPOINT", l.labelChoices())
}
