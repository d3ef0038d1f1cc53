#!/bin/sh
# fmplcc, fmplc++, fmplfort: a compiler with what a program of FMPL needs. All arguments are the compiler's, but for
#
#   --showme, -show     print the command, and do not run it
#   --showme:compile    print what is needed to compile, and --showme:link what to link
#
# The compilers are cc, c++ and gfortran, or what FMPL_CC, FMPL_CXX and FMPL_FC name. The library is found where this file lies.
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

# /usr/include and the linker's own directories need no option, and an option for them would change their order.
compile="-I$include" libraries="-L$lib -Wl,-rpath,$lib -lfmpl"
case $prefix in /usr) compile='' libraries='-lfmpl' ;; esac
if [ "$show" = compile ]; then echo $compile; exit; fi
if [ "$show" = link ]; then echo $libraries; exit; fi

[ -z "$compile" ] || set -- "$compile" "$@"
# shellcheck disable=SC2086
[ -z "$link" ] || set -- "$@" $libraries
[ -n "$sources" ] || module=''
if [ -n "$show" ]; then echo "$compiler${module:+ $module} $*"; exit; fi
[ -n "$module" ] || exec "$compiler" "$@"

# Each Fortran compiler has a form of modules of its own: this one compiles FMPL's for itself, and finds it in a directory that goes again.
made=$(mktemp -d) || exit 1
trap 'rm -rf "$made"' EXIT
trap 'exit 130' INT TERM
(cd "$made" && "$compiler" -c "$module") || exit
[ -z "$link" ] || set -- "$@" "$made/fmpl.o"
"$compiler" "-I$made" "$@"
