"""All models, one after the other: looked at first, then loaded, asked and let go."""

from __future__ import annotations

import gc

import torch
from transformers.utils import logging

from ..spec.answer import AnswerJob
from . import fit, speak
from .course import Course
from .limits import Limits
from .load import load
from .look import Known, look


def answers(job: AnswerJob, course: Course, limits: Limits) -> None:
    """Tell every answer. Raises Refused before anything is loaded where one can't come."""
    logging.disable_progress_bar()
    torch.set_num_threads(job.threads or fit.cores())
    course.doing("looking at the models")
    known = [look(asked, job) for asked in job.models]
    fit.check(known, job)
    for index, one in enumerate(known):
        if why := limits.why():
            course.give_up(why)
            return
        if not _asked(index, one, job, course, limits):
            return
    course.tell_cut()


def _asked(index: int, known: Known, job: AnswerJob, course: Course, limits: Limits) -> bool:
    """Let one model answer every prompt; False where a limit ended it."""
    course.doing(f"loading {known.asked.name}")
    course.model(index, state="loading")
    place = fit.place(known, job)  # asked again: what was free a model ago may be taken
    began = limits.clock()
    model = load(known, place.device)
    took = limits.clock() - began
    course.model(
        index, state="ready", device=place.device, why=place.why, dtype=known.dtype, bytes=known.bytes, seconds=took
    )
    try:
        for number, prompt in enumerate(known.prompts):
            if why := limits.why():
                course.give_up(why)
                return False
            course.begin(index, number)
            limits.share(course.left)
            course.answer(index, number, speak.speak(model, known, prompt.ids, job.sampling, course, limits))
        return True
    finally:
        del model
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
