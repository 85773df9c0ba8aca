"""The fixtures of the tests of `largegnn`, for the tests of the laboratory too."""

from tests.conftest import _all_is_logged as _all_is_logged
from tests.conftest import one_thread as one_thread
from tests.conftest import real_data as real_data
from tests.conftest import toy_folder as toy_folder
from tests.conftest import toy_task as toy_task
