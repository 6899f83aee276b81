package cli

import "strings"

// filesToo is the line that says that names of files may stand there.
const filesToo = ":files"

// shells are those that there is a script for.
func shells() []string { return []string{"bash", "zsh", "fish"} }

// script is the one of a shell for a program.
func script(shell, program string) string {
	text := map[string]string{"bash": bash, "zsh": zsh, "fish": fish}[shell]
	return strings.NewReplacer("PROGRAM", program, "FUNCTION", "_"+strings.ReplaceAll(program, "-", "_"), "FILES", filesToo).Replace(text)
}

const bash = `# bash completion of PROGRAM: source <(PROGRAM completion bash)
FUNCTION() {
  local line current=${COMP_WORDS[COMP_CWORD]} program=${COMP_WORDS[0]/#\~/$HOME}
  [ "$current" = = ] && current=
  COMPREPLY=()
  while IFS= read -r line; do
    if [ "$line" = FILES ]; then
      compopt -o filenames 2>/dev/null
      while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$current")
    else
      COMPREPLY+=("${line%%$'\t'*}")
    fi
  done < <("$program" completion words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F FUNCTION PROGRAM
`

const zsh = `#compdef PROGRAM
# zsh completion of PROGRAM: source <(PROGRAM completion zsh), after compinit
FUNCTION() {
  local line text files
  local -a found
  while IFS= read -r line; do
    if [[ $line == FILES ]]; then
      files=1
    else
      text=${line%%$'\t'*}
      found+=("${text//:/\\:}:${line#*$'\t'}")
    fi
  done < <("${~words[1]}" completion words "${(@)words[2,CURRENT]}" 2>/dev/null)
  (( $#found )) && _describe -o PROGRAM found
  [[ -n $files ]] && _files
}
compdef FUNCTION PROGRAM
`

const fish = `# fish completion of PROGRAM: PROGRAM completion fish | source
function FUNCTION
  set -l typed (commandline -opc) (commandline -ct)
  for line in (eval $typed[1] completion words (string escape -- $typed[2..-1]) 2>/dev/null)
    if test "$line" = FILES
      __fish_complete_path (commandline -ct)
    else
      echo $line
    end
  end
end
complete -c PROGRAM -f -a '(FUNCTION)'
`
