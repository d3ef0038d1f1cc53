! Hello: who am I, how many are we; every rank greets rank 0.
!
!     gfortran PREFIX/include/fmpl.f90 hello.f90 -o hello $(pkg-config --libs fmpl)
!     fmpl run -n 4 ./hello
program hello
  use fmpl
  implicit none
  integer :: rank, nranks, from, length, index, ier
  character(len=64) :: text, greeting

  call fmpl_init(FMPL_NULL, FMPL_NULL, 32, ier)
  call try(ier)
  call fmpl_comm_rank(FMPL_COMM_WORLD, rank, ier)
  call try(ier)
  call fmpl_comm_size(FMPL_COMM_WORLD, nranks, ier)
  call try(ier)
  if (rank /= 0) then
    write (text, '(a,i0,a,i0)') 'hello from rank ', rank, ' of ', nranks
    call fmpl_send(text, len_trim(text), 0, 0, FMPL_COMM_WORLD, ier)
    call try(ier)
  else
    print '(a,i0,a)', 'rank 0 of ', nranks, ' listens'
    do from = 1, nranks - 1
      ! Shorter messages than the buffer are fine.
      text = ' '
      call fmpl_recv(text, len(text), from, 0, FMPL_COMM_WORLD, ier)
      call try(ier)
      call fmpl_received(from, 0, FMPL_COMM_WORLD, length, index, ier)
      call try(ier)
      write (greeting, '(a,i0,a,i0)') 'hello from rank ', from, ' of ', nranks
      call expect(text == greeting .and. length == len_trim(greeting), 'the greeting')
      print '(a)', trim(text)
    end do
  end if
  call fmpl_finalize(ier)
  call try(ier)

contains

  include 'example.inc'

end program hello
