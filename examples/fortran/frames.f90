! Frames: rank 0 is a camera that hands its pictures to the other ranks in turn; none is ever copied.
!
!     gfortran PREFIX/include/fmpl.f90 frames.f90 -o frames $(pkg-config --libs fmpl)
!     fmpl run -n 3 ./frames
program frames
  use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
  use fmpl
  implicit none
  integer, parameter :: pixels = 640 * 480, count = 100
  integer :: rank, nranks, viewers, viewer, frame, i, length, ier
  integer(8) :: copied
  type(c_ptr) :: memory
  integer, pointer :: picture(:)

  call fmpl_init(FMPL_NULL, FMPL_NULL, 1, ier)
  call try(ier)
  call fmpl_comm_rank(FMPL_COMM_WORLD, rank, ier)
  call try(ier)
  call fmpl_comm_size(FMPL_COMM_WORLD, nranks, ier)
  call try(ier)
  viewers = max(nranks - 1, 1)
  do frame = 0, count - 1
    ! Alone, rank 0 looks at its pictures itself.
    viewer = merge(0, 1 + mod(frame, viewers), nranks == 1)
    if (rank == 0) then
      call fmpl_loan(4 * pixels, memory, ier)
      call try(ier)
      call c_f_pointer(memory, picture, [pixels])
      picture = [(ieor(frame, i), i = 1, pixels)]
      ! The picture is the viewer's from here on.
      call fmpl_send_loan(memory, 4 * pixels, viewer, 0, FMPL_COMM_WORLD, ier)
      call try(ier)
    end if
    if (rank == viewer) then
      call fmpl_recv_loan(memory, length, 0, 0, FMPL_COMM_WORLD, ier)
      call try(ier)
      call c_f_pointer(memory, picture, [length / 4])
      call expect(all(picture == [(ieor(frame, i), i = 1, pixels)]), 'a picture')
      ! It goes back to the camera.
      call fmpl_loan_return(memory, ier)
      call try(ier)
    end if
  end do
  call fmpl_barrier(FMPL_COMM_WORLD, ier)
  call try(ier)
  call fmpl_counter(FMPL_COUNTER_LOAN_COPIED, copied, ier)
  call try(ier)
  if (rank == 0) print '(i0,a,i0,a,i0,a)', count, ' frames were handed to ', viewers, ' viewers, ', copied, ' bytes were copied'
  call fmpl_finalize(ier)
  call try(ier)

contains

  include 'example.inc'

end program frames
