"""Libraries that lead to code in memory."""

import ctypes
import platform
import struct
import sys

import pytest

from hinge.runtime.engine import helper_library
from hinge.runtime.shared import Goal, shared_library

here = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"), reason="ELF"
)

SUM = """define i64 @total(i64 %a, i64 %b, i64 %c, i64 %d, i64 %e, i64 %own) {
  %x = mul i64 %a, 100
  %y = add i64 %x, %e
  %z = mul i64 %own, 10000
  %s = add i64 %y, %z
  ret i64 %s
}
"""


@here
def test_functions_get_their_arguments_and_their_own(tmp_path):
    code = helper_library(SUM)
    goals = {f"total_{i}": Goal(code.address("total"), i) for i in range(5)}
    path = tmp_path / "total.so"
    path.write_bytes(shared_library(goals))
    library = ctypes.CDLL(str(path))
    path.unlink()
    for i in range(5):
        assert library[f"total_{i}"](3, 0, 0, 0, 7) == 307 + 10000 * i
    with pytest.raises(AttributeError):
        library["total_5"]


@here
def test_the_stack_does_not_become_executable(tmp_path):
    path = tmp_path / "nothing.so"
    path.write_bytes(shared_library({"nothing": Goal(0)}))
    ctypes.CDLL(str(path))
    with open("/proc/self/maps") as file:
        rights = [line.split()[1] for line in file if "[stack]" in line]
    assert rights and not any("x" in r for r in rights)


def test_jumps_on_arm_are_as_its_manual_has_them():
    """LDR (literal), 64 bits: 0x58 at the top, words ahead from bit 5, register; BR from bit 5."""
    goal = Goal(0x99AABBCCDDEEFF00, 0x1122334455667788)
    file = shared_library({"f": goal}, "aarch64")
    at = file.index(struct.pack("<QQ", goal.own, goal.code))
    own, code, jump = struct.unpack_from("<3I", file, at - 16)
    assert own == 0x58 << 24 | 16 // 4 << 5 | 5
    assert code == 0x58 << 24 | (24 - 4) // 4 << 5 | 16
    assert jump == 0xD61F0000 | 16 << 5


def test_other_systems_have_none():
    assert shared_library({"f": Goal(0)}, "riscv64") is None
