package taskdef

// Codes of the rules about the limits of fields.
const (
	codeRequired = "member-missing"
	codeEnum     = "enum"
	codeRange    = "member-range"
)

// memberRules are about the limits of single members, which are stated where the
// fields are, see field. A limit with a distinct message at AWS has its own rule. "*" is
// for values that are computed: they were not compared.
var memberRules = []Rule{
	{Code: codeRequired, Members: []string{"*"}, Text: "Missing required parameter '{member}'.", Wording: Ours,
		Fix: "add it", task: eachFault(codeRequired)},
	{Code: codeEnum, Members: []string{"*"}, Text: enumText, Wording: Ours, Fix: enumFix, task: eachFault(codeEnum)},
	{Code: codeRange, Members: []string{"*"}, Text: "{member} must be between {low} and {high}.", Wording: Ours,
		Fix: "take a number in that range", task: eachFault(codeRange)},
}

// eachFault reports what was found when the document was read.
func eachFault(code string) func(*subject, report) {
	return func(d *subject, report report) {
		for _, f := range d.faults {
			if f.code == code {
				report(f.path, f.values...)
			}
		}
	}
}
