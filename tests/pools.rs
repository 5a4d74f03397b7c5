//! Failed starts of threads, forks, refused huge pages, and pools that break their contract. Calls
//! run on the calling thread, or return an error that reports what the pool did.
//!
//! Rayon has one global pool per process, so each case runs in a separate process. The test starts
//! its own binary again, with the name of the case in the environment.

use std::time::{Duration, Instant};

use ndscatter::{
    Execution, Pool, Rayon, Reduction, Scatter, ScatterError, TensorView, TensorViewMut, scatter_nd,
};

/// Size of the workload. It is large enough that a call requests the threads of a pool.
const TUPLES: usize = 2_000_000;
const ELEMENTS: usize = 2_000_000;

struct Case {
    indices: Vec<i32>,
    updates: Vec<f32>,
    expected: Vec<f32>,
}

impl Case {
    fn new() -> Self {
        let mut state = 7_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 8
        };
        let elements = u32::try_from(ELEMENTS).expect("few elements");
        let mut case = Self {
            indices: Vec::new(),
            updates: Vec::new(),
            expected: vec![1.0; ELEMENTS],
        };
        for _ in 0..TUPLES {
            let (index, update) = (next() % elements, next() % 1000);
            case.indices.push(i32::try_from(index).expect("in range"));
            let update = f32::from(u16::try_from(update).expect("small")) / 7.0;
            case.updates.push(update);
            case.expected[index as usize] += update;
        }
        case
    }

    fn check(&self, what: &str) {
        let mut output = vec![1.0; ELEMENTS];
        let done = scatter_nd(
            TensorViewMut::contiguous(&mut output, &[ELEMENTS]).expect("a view"),
            TensorView::contiguous(&self.indices, &[TUPLES, 1]).expect("a view"),
            TensorView::contiguous(&self.updates, &[TUPLES]).expect("a view"),
            Reduction::Add,
        );
        done.unwrap_or_else(|error| panic!("{what}: {error}"));
        let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert!(
            bits(&output) == bits(&self.expected),
            "{what}: the bits differ"
        );
    }
}

/// Returns the number of threads that a call would use now.
fn workers() -> Option<usize> {
    Rayon.workers()
}

/// Waits until the pool reports `count` workers. It waits up to a minute, because the machine may
/// be loaded.
fn wait_for_workers(count: usize, what: &str) {
    let start = Instant::now();
    while workers() != Some(count) {
        let waited = start.elapsed();
        assert!(waited < Duration::from_secs(60), "{what}: {:?}", workers());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether more than one thread takes part in a run of this many tasks.
fn runs_on_threads(tasks: usize) -> bool {
    let ran = std::sync::Mutex::new(std::collections::HashSet::new());
    Rayon.run(tasks, &|_| {
        std::thread::sleep(Duration::from_millis(2));
        let id = std::thread::current().id();
        ran.lock().expect("no task panics").insert(id);
    });
    ran.into_inner().expect("no task panics").len() > 1
}

#[test]
fn printing_a_pool_does_not_start_it() {
    play("print", &[]);
}

fn print() {
    let pool: &dyn Pool = &Rayon;
    let execution = Execution::new();
    let text = format!("{pool:?} {execution:?}");
    assert!(text.contains("Pool"), "{text}");
    // The program can still start the pool.
    let started = rayon::ThreadPoolBuilder::new()
        .num_threads(2)
        .build_global();
    started.expect("the pool has not been started");
}

#[test]
fn a_pool_that_the_program_has_started_is_used() {
    play("programs_own", &[]);
}

fn programs_own() {
    let started = rayon::ThreadPoolBuilder::new()
        .num_threads(2)
        .build_global();
    started.expect("the program starts the pool first");
    Case::new().check("the program's own pool");
    wait_for_workers(2, "the program's own pool, and no other");
    assert!(runs_on_threads(20), "the tasks run on its threads");
}

#[test]
fn first_calls_of_many_threads_share_one_pool() {
    play("first_calls_at_once", &[]);
}

fn first_calls_at_once() {
    let case = Case::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| case.check("one of four first calls"));
        }
    });
    wait_for_workers(3, "the number in RAYON_NUM_THREADS");
    let name = rayon::broadcast(|_| std::thread::current().name().map(str::to_owned));
    assert_eq!(name.len(), 3, "all threads work");
}

/// A pool that runs all tasks, repeats the first `repeated` tasks, and then runs `invented` tasks
/// with numbers that do not exist.
struct Busy {
    repeated: usize,
    invented: usize,
}

impl Pool for Busy {
    fn workers(&self) -> Option<usize> {
        Some(4)
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        for index in (0..tasks).chain(0..tasks.min(self.repeated)) {
            task(index);
        }
        (tasks..tasks + self.invented).for_each(task);
    }
}

#[test]
fn surplus_tasks_of_a_pool_are_counted() {
    let case = Case::new();
    for pool in [
        Busy {
            repeated: usize::MAX,
            invented: 0,
        },
        Busy {
            repeated: 0,
            invented: 5,
        },
    ] {
        let mut output = vec![1.0; ELEMENTS];
        let done = Scatter::nd()
            .reduction(Reduction::Add)
            .execution(Execution::new().pool(&pool))
            .in_place(
                TensorViewMut::contiguous(&mut output, &[ELEMENTS]).expect("a view"),
                TensorView::contiguous(&case.indices, &[TUPLES, 1]).expect("a view"),
                TensorView::contiguous(&case.updates, &[TUPLES]).expect("a view"),
            );
        let error = done.expect_err("the pool broke its promise");
        let text = error.to_string();
        let ScatterError::PoolFailed {
            tasks,
            completed,
            surplus,
        } = error
        else {
            panic!("{text}");
        };
        assert!(tasks > 1, "work was divided");
        assert_eq!(completed, tasks, "no task is missing");
        assert_eq!(surplus, pool.repeated.min(tasks) + pool.invented, "{text}");
        assert!(text.contains(&surplus.to_string()), "{text}");
    }
}

/// Environment variable with the name of the case that this process runs.
const PART: &str = "NDSCATTER_TEST_PART";

/// Runs a case in a separate process, with three threads per pool.
fn play(part: &str, variables: &[(&str, &str)]) {
    let test = std::env::current_exe().expect("the test binary has a path");
    let done = std::process::Command::new(test)
        .args([
            "--exact",
            "child_process",
            "--nocapture",
            "--test-threads=1",
        ])
        .env("RAYON_NUM_THREADS", "3")
        .env(PART, part)
        .envs(variables.iter().copied())
        .output()
        .expect("the test runs again");
    let said = [done.stdout, done.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(done.status.success(), "{part}: {}{}", said[0], said[1]);
    assert!(said[0].contains("1 passed"), "{part}: {}", said[0]);
}

/// Checks nothing without the environment variable. `play` runs it in child processes.
#[test]
fn child_process() {
    let Ok(part) = std::env::var(PART) else {
        return;
    };
    match part.as_str() {
        "print" => print(),
        "programs_own" => programs_own(),
        "first_calls_at_once" => first_calls_at_once(),
        #[cfg(target_os = "linux")]
        part => system::play(part),
        #[cfg(not(target_os = "linux"))]
        part => panic!("unknown case {part}"),
    }
}

/// Cases that set limits or fork.
#[cfg(target_os = "linux")]
mod system {
    #![expect(unsafe_code, reason = "limits and forks are calls of the system")]

    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    pub(crate) fn play(part: &str) {
        // SAFETY: `alarm` takes a number and accesses no memory. It ends this process if the case
        // hangs.
        unsafe { libc::alarm(200) };
        match part {
            "too_few_threads" => too_few_threads(),
            "broken_by_the_program" => broken_by_the_program(),
            "fork_after_use" => fork_after_use(),
            "fork_before_use" => fork_before_use(),
            "fork_of_the_programs_pool" => fork_of_the_programs_pool(),
            "fork_during_the_start" => fork_during_the_start(),
            "fork_during_calls" => fork_during_calls(),
            "no_huge_pages" => no_huge_pages(),
            part => panic!("unknown case {part}"),
        }
    }

    /// Size of each thread's stack in MiB. All other memory of a process is small compared with a
    /// stack.
    const STACK_MIB: usize = 512;
    const STACK: (&str, &str) = ("RUST_MIN_STACK", "536870912");

    /// Limits the address space to `bytes` more than are in use. `None` removes the limit.
    fn leave_room_for(bytes: Option<usize>) {
        let pages = std::fs::read_to_string("/proc/self/statm").expect("Linux has this file");
        let pages = pages.split(' ').next().and_then(|pages| pages.parse().ok());
        // SAFETY: `sysconf` takes a number and returns a number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let in_use = pages.unwrap_or(0_u64) * u64::try_from(page).expect("a size");
        let limit = libc::rlimit {
            rlim_cur: bytes.map_or(libc::RLIM_INFINITY, |bytes| in_use + bytes as u64),
            rlim_max: libc::RLIM_INFINITY,
        };
        // SAFETY: `limit` is a local struct that is valid during the call.
        let set = unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) };
        assert_eq!(set, 0, "limits may be set");
    }

    #[test]
    fn calls_run_without_threads_until_threads_can_start() {
        super::play("too_few_threads", &[STACK]);
    }

    fn too_few_threads() {
        let case = Case::new();
        // The rooms are half a stack, one and a half stacks, and two and a half stacks.
        for halves in [1, 3, 5] {
            leave_room_for(Some(halves * (STACK_MIB << 20) / 2));
            for _ in 0..3 {
                case.check("without threads");
            }
            assert_eq!(workers(), Some(1), "the calling thread alone");
            std::thread::sleep(Duration::from_millis(150));
        }
        leave_room_for(None);
        wait_for_workers(3, "when threads can be started");
        case.check("with threads");
        assert!(runs_on_threads(20), "the tasks run on threads");
        assert_eq!(rayon::current_num_threads(), 3, "the program's pool");
    }

    #[test]
    fn calls_run_without_a_pool_that_the_program_broke() {
        super::play("broken_by_the_program", &[STACK]);
    }

    fn broken_by_the_program() {
        let case = Case::new();
        leave_room_for(Some((STACK_MIB << 20) / 2));
        let broken = std::panic::catch_unwind(rayon::current_num_threads);
        assert!(
            broken.is_err(),
            "rayon's pool fails for the rest of the process"
        );
        leave_room_for(None);
        for _ in 0..3 {
            case.check("on the calling thread");
        }
        assert_eq!(workers(), Some(1), "alone");
    }

    /// Forks, runs `child` in the child process, and waits for it. A child that hangs is killed.
    fn in_a_child(what: &str, child: impl FnOnce()) {
        // SAFETY: the child allocates memory, starts threads and makes calls. These are allowed
        // after a fork: glibc keeps its allocator usable in the child.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0, "{what}: a fork");
        if pid == 0 {
            // SAFETY: this `prctl` takes numbers and accesses no memory. It ends the child when its
            // parent ends.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child));
            // SAFETY: `_exit` takes a number and ends the process.
            unsafe { libc::_exit(i32::from(outcome.is_err())) };
        }
        let start = Instant::now();
        let mut status = 0;
        // SAFETY: `status` is a local variable that is valid during the call.
        while unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) } == 0 {
            if start.elapsed() > Duration::from_secs(60) {
                // SAFETY: `pid` is still the child's, because the child has not been waited for.
                unsafe { libc::kill(pid, libc::SIGKILL) };
                // SAFETY: `status` is a local variable that is valid during the call.
                unsafe { libc::waitpid(pid, &raw mut status, 0) };
                panic!("{what}: the child hangs");
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(status, 0, "{what}: the exit status of the child");
    }

    #[test]
    fn children_of_a_process_with_a_pool_run_on_the_calling_thread() {
        super::play("fork_after_use", &[]);
    }

    fn fork_after_use() {
        let case = Case::new();
        case.check("before any fork");
        wait_for_workers(3, "before any fork");
        in_a_child("after use", || {
            case.check("the child");
            assert_eq!(workers(), Some(1), "the child has no threads");
            assert!(!runs_on_threads(20), "the child uses no threads");
            in_a_child("of a child", || case.check("the child's child"));
            let own = rayon::ThreadPoolBuilder::new().num_threads(2).build();
            let own = own.expect("a child may have a pool of its own");
            own.install(|| case.check("the child's own pool"));
        });
        case.check("the parent, after forks");
        assert_eq!(workers(), Some(3), "the parent keeps its threads");
        assert!(runs_on_threads(20), "the parent uses its threads");
    }

    #[test]
    fn a_child_that_was_forked_early_starts_its_own_pool() {
        super::play("fork_before_use", &[]);
    }

    fn fork_before_use() {
        let case = Case::new();
        in_a_child("before use", || {
            case.check("the child");
            wait_for_workers(3, "the child's own pool");
            assert!(runs_on_threads(20), "the tasks run on threads");
            in_a_child("of a child", || {
                case.check("the child's child");
                assert_eq!(workers(), Some(1), "the child's child has no threads");
            });
        });
        case.check("the parent");
        wait_for_workers(3, "the parent's own pool");
    }

    #[test]
    fn children_of_a_program_with_a_pool_do_not_wait_for_it() {
        super::play("fork_of_the_programs_pool", &[]);
    }

    fn fork_of_the_programs_pool() {
        let case = Case::new();
        rayon::join(|| (), || ());
        in_a_child("a child of the program's pool", || {
            for _ in 0..3 {
                case.check("the child");
            }
            assert_eq!(workers(), Some(1), "the child has no threads");
            in_a_child("of a child", || case.check("the child's child"));
        });
        case.check("the parent");
        wait_for_workers(3, "the parent's pool");
    }

    #[test]
    fn forks_while_the_pool_starts_do_not_hang() {
        super::play("fork_during_the_start", &[]);
    }

    /// Forks at different times during the first call of another thread.
    fn fork_during_the_start() {
        let case = Case::new();
        for turn in 0..24_u64 {
            in_a_child("before any use of a pool", || {
                let first = std::thread::spawn(workers);
                std::thread::sleep(Duration::from_micros(turn * 20));
                in_a_child("while the pool starts", || case.check("the child"));
                first.join().expect("the first call succeeds");
            });
        }
    }

    #[test]
    fn forks_during_calls_do_not_hang() {
        super::play("fork_during_calls", &[]);
    }

    /// Forks at different times while two other threads make calls. A lock that one of them holds
    /// at the fork stays locked in the child.
    fn fork_during_calls() {
        let case = Case::new();
        case.check("before any fork");
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        case.check("beside forks");
                    }
                });
            }
            for turn in 0..8_u64 {
                std::thread::sleep(Duration::from_micros(turn * 1500));
                in_a_child("during calls", || {
                    case.check("the child");
                    ndscatter::release_scratch();
                    case.check("the child again");
                });
            }
            is_over.store(true, Ordering::Relaxed);
        });
        case.check("the parent, after forks");
    }

    /// Makes every later call of `madvise` by this thread, and by threads that it starts, fail.
    fn refuse_madvise() {
        // The filter loads the number of the system call, compares it, and returns an action.
        let code = |bits: u32| u16::try_from(bits).expect("codes have 16 bits");
        let load = code(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS);
        let compare = code(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K);
        let action = code(libc::BPF_RET | libc::BPF_K);
        let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned();
        let madvise = u32::try_from(libc::SYS_madvise).expect("a small number");
        let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
        let mut steps = [
            step(load, 0, 0, 0),
            step(compare, 0, 1, madvise),
            step(action, 0, 0, refused),
            step(action, 0, 0, libc::SECCOMP_RET_ALLOW),
        ];
        let filter = libc::sock_fprog {
            len: 4,
            filter: steps.as_mut_ptr(),
        };
        // SAFETY: the first call takes numbers. The second call reads the filter and its four steps,
        // which live until it returns.
        let done = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
                | libc::prctl(
                    libc::PR_SET_SECCOMP,
                    libc::SECCOMP_MODE_FILTER,
                    &raw const filter,
                )
        };
        assert_eq!(done, 0, "a filter of system calls");
        // SAFETY: an empty range of pages is never accessed.
        let refused = unsafe { libc::madvise(std::ptr::null_mut(), 0, libc::MADV_HUGEPAGE) };
        assert_eq!(refused, -1, "the filter refuses the call");
    }

    #[test]
    fn calls_run_without_huge_pages() {
        super::play("no_huge_pages", &[]);
    }

    /// The output and the scratch memory are large enough that a call requests huge pages.
    fn no_huge_pages() {
        let case = Case::new();
        refuse_madvise();
        for _ in 0..2 {
            case.check("in place");
            let made = Scatter::nd().reduction(Reduction::Add).allocate(
                TensorView::contiguous(&vec![1.0; ELEMENTS], &[ELEMENTS]).expect("a view"),
                TensorView::contiguous(&case.indices, &[TUPLES, 1]).expect("a view"),
                TensorView::contiguous(&case.updates, &[TUPLES]).expect("a view"),
            );
            let made = made.expect("a valid call").into_vec();
            assert!(made == case.expected, "an allocated result");
            ndscatter::release_scratch();
        }
    }
}
