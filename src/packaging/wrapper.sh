#!/bin/sh
# fmplcc, fmplc++, fmplfort: a compiler with what a program of FMPL needs. All arguments are the compiler's, but for
#
#   --showme, -show     print the command, and do not run it
#   --showme:compile    print what is needed to compile, and --showme:link what to link
#
# What is printed is quoted as a shell needs it. The compilers are cc, c++ and gfortran, or what FMPL_CC, FMPL_CXX and FMPL_FC name.
# The library is found where this file lies.
here=$(CDPATH='' cd -- "$(dirname -- "$(readlink -f -- "$0")")" && pwd) || exit 1
prefix=$(dirname -- "$here")
include=$prefix/include lib=$prefix/@LIBDIR@
module='' sources=''
case $(basename -- "$0") in
  *fort) compiler=${FMPL_FC:-gfortran} module=$include/fmpl.f90 ;;
  *++) compiler=${FMPL_CXX:-c++} ;;
  *) compiler=${FMPL_CC:-cc} ;;
esac

show='' link=1
for argument; do
  shift
  case $argument in
    --showme | -show | -showme) show=all; continue ;;
    --showme:compile) show=compile; continue ;;
    --showme:link) show=link; continue ;;
    -c | -S | -E | -M | -MM | -fsyntax-only) link='' ;;
    *.f | *.F | *.f90 | *.F90 | *.f03 | *.f08 | *.for) sources=1 ;;
  esac
  set -- "$@" "$argument"
done

# plain WORD...: prints the words as a shell reads them.
plain() {
  line=''
  for word; do
    case $word in
      '' | *[!A-Za-z0-9_@%+=:,./-]*) word="'$(printf '%s\n' "$word" | sed "s/'/'\\\\''/g")'" ;;
    esac
    line="$line${line:+ }$word"
  done
  printf '%s\n' "$line"
}

# /usr/include and the linker's own directories need no option, and an option for them would change their order.
elsewhere=1
case $prefix in /usr) elsewhere='' ;; esac
case $show in compile | link) set -- && link=1 ;; esac
if [ -n "$elsewhere" ] && [ "$show" != link ]; then set -- "-I$include" "$@"; fi
if [ "$show" != compile ] && [ -n "$link" ]; then
  if [ -n "$elsewhere" ]; then set -- "$@" "-L$lib" "-Wl,-rpath,$lib"; fi
  set -- "$@" -lfmpl
fi
case $show in compile | link) plain "$@"; exit ;; esac
[ -n "$sources" ] || module=''
if [ -n "$show" ]; then plain "$compiler" ${module:+"$module"} "$@"; exit; fi
[ -n "$module" ] || exec "$compiler" "$@"

# Each Fortran compiler has a form of modules of its own: this one compiles FMPL's for itself, and finds it in a directory that goes again.
made=$(mktemp -d) || exit 1
trap 'rm -rf "$made"' EXIT
trap 'exit 130' INT TERM
(cd "$made" && "$compiler" -c "$module") || exit
[ -z "$link" ] || set -- "$@" "$made/fmpl.o"
"$compiler" "-I$made" "$@"
