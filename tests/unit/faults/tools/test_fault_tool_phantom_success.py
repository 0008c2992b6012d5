from holdfast.faults.tools.phantom_success import PhantomSuccess


def test_phantom_success_says_ok_and_does_nothing(meeting):
    m = meeting(PhantomSuccess(), "created")
    assert m.run() == {"status": "ok"}
    assert m.forwarded == 0


def test_phantom_success_can_say_it_in_text(meet):
    assert meet(PhantomSuccess(shape="text")) == "ok"
