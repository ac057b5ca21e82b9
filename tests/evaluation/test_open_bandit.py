"""A folder of the Open Bandit data becomes rounds."""

from __future__ import annotations

from pathlib import Path

from fastbandit.evaluation import read_rounds


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def open_bandit(folder: Path, policy: str, arms: list[int]) -> Path:
    home = folder / "obd" / policy / "men"
    home.mkdir(parents=True)
    items = "".join(f"{row},0.{row},a,b,{'c' if row else 'd'}\n" for row in range(2))
    features = ",".join(f"item_feature_{number}" for number in range(4))
    write(home / "item_context.csv", f"item_id,{features}\n{items}")
    users = ",".join(f"user_feature_{number}" for number in range(4))
    rows = "".join(
        f"{arm},{1 + place % 2},{place % 2},0.5,u,v,w,x\n" for place, arm in enumerate(arms)
    )
    write(home / "men.csv", f"item_id,position,click,propensity_score,{users}\n{rows}")
    return home


def test_an_open_bandit_folder_is_read_with_the_position_on_the_page(tmp_path: Path) -> None:
    found = read_rounds(open_bandit(tmp_path, "random", [0, 1, 1, 0]))

    assert found.arms == 2
    assert found.rewards.tolist() == [0.0, 1.0, 0.0, 1.0]
    assert found.contexts[:, -2:].tolist() == [[1, 0], [0, 1], [1, 0], [0, 1]]
