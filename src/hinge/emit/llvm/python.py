"""What calls from Python need besides the arithmetic: functions of Python and NumPy, and loops."""

from __future__ import annotations

from .body import Flavor

__all__ = ["helpers"]


def helpers(f: Flavor) -> str:
    """The declarations, `spread` from values to entries, `together` from arrays to a tuple."""
    return _DECLARATIONS + _TOGETHER + _spread(f)


_DECLARATIONS = """
@hinge_ndarray = external global i8
@hinge_tuple = external global i8
@hinge_list = external global i8
@hinge_out = external global i8
@hinge_descr_f64 = external global i8
@hinge_descr_f32 = external global i8
declare ptr @hinge_new_array(ptr, i32, ptr, i32, ptr, ptr, i32, i32, ptr)
declare ptr @hinge_vectorcall(ptr, ptr, i64, ptr)
declare ptr @hinge_new_tuple(i64)
declare ptr @hinge_tuple_subtype(ptr, ptr, ptr)
declare i64 @hinge_size(ptr)
declare ptr @hinge_item(ptr, i64)
declare i64 @hinge_list_size(ptr)
declare ptr @hinge_list_item(ptr, i64)
declare i32 @hinge_set_item(ptr, i64, ptr)
declare i64 @hinge_number(ptr)
declare ptr @hinge_from_number(i64)
declare void @hinge_retain(ptr)
declare void @hinge_release(ptr)
declare ptr @hinge_allocate(i64)
declare void @hinge_free(ptr)
declare ptr @hinge_no_memory()
declare ptr @hinge_unlock()
declare void @hinge_lock(ptr)
"""

# a plain tuple, or that tuple as the one argument of tuple.__new__ for a type derived from it
_TOGETHER = """
define internal ptr @together(ptr %arrays, i64 %n, ptr %form) #1 {
entry:
  %plain = call ptr @hinge_new_tuple(i64 %n)
  %none = icmp eq ptr %plain, null
  br label %head
head:
  %j = phi i64 [ 0, %entry ], [ %jn, %next ]
  %end = icmp eq i64 %j, %n
  br i1 %end, label %filled, label %more
more:
  %p = getelementptr ptr, ptr %arrays, i64 %j
  %array = load ptr, ptr %p
  br i1 %none, label %drop, label %keep
drop:
  call void @hinge_release(ptr %array)
  br label %next
keep:
  %set = call i32 @hinge_set_item(ptr %plain, i64 %j, ptr %array)
  br label %next
next:
  %jn = add i64 %j, 1
  br label %head
filled:
  %same = icmp eq ptr %form, @hinge_tuple
  %done = or i1 %none, %same
  br i1 %done, label %as_it_is, label %named
as_it_is:
  ret ptr %plain
named:
  %args = call ptr @hinge_new_tuple(i64 1)
  %no_args = icmp eq ptr %args, null
  br i1 %no_args, label %lost, label %make
lost:
  call void @hinge_release(ptr %plain)
  ret ptr null
make:
  %first = call i32 @hinge_set_item(ptr %args, i64 0, ptr %plain)
  %whole = call ptr @hinge_tuple_subtype(ptr %form, ptr %args, ptr null)
  call void @hinge_release(ptr %args)
  ret ptr %whole
}
"""


def _spread(f: Flavor) -> str:
    """A loop that copies values to the entries that the index names."""
    return f"""
define internal void @spread_{f.name}(ptr %out, ptr %index, ptr %data, i64 %n) #1 {{
entry:
  br label %head
head:
  %j = phi i64 [ 0, %entry ], [ %jn, %more ]
  %end = icmp eq i64 %j, %n
  br i1 %end, label %done, label %more
more:
  %ip = getelementptr i32, ptr %index, i64 %j
  %i = load i32, ptr %ip
  %w = zext i32 %i to i64
  %p = getelementptr {f.type}, ptr %out, i64 %w
  %v = load {f.type}, ptr %p
  %q = getelementptr {f.type}, ptr %data, i64 %j
  store {f.type} %v, ptr %q
  %jn = add i64 %j, 1
  br label %head
done:
  ret void
}}
"""
