// The controller of the schedule explorer: it decides which thread of all participants runs to its next
// call. Its state is in memory that all participants share; the thread that gives way takes the decision,
// so a thread that goes on costs no switch. See Tests/Schedules/explore.
#ifndef SEAM_H
#define SEAM_H

#include <stdint.h>

enum {
  seam_processes = 6,
  seam_steps = 6000,
  seam_choices = 512,
  seam_note_bytes = 8192,
};

// What a choice does at its step.
enum { seam_go = 1, seam_time, seam_stop, seam_continue, seam_kill };

struct seam_choice {
  uint32_t step;
  uint8_t action, process;
};

// A decision: the call that the running thread was about to make.
struct seam_step {
  uint8_t process, thread, call;
  // Whether the thread waits, and gives way.
  uint8_t waits;
  // Bits of processes that could go on, that have to look for news first, that could go on if time passed,
  // and that are stopped.
  uint8_t ready, polling, timed, stopped;
  int32_t result;
  // What the call touches: a hash of the last name, and the lowest bit if it may change it.
  uint32_t touched[4];
  int64_t time;
};

enum seam_end { seam_finished, seam_deadlock, seam_endless, seam_stuck };

// Reserves the memory, fixes what is random, and keeps to one core. May start the program again.
void seam_open(char *_Nullable const *_Nonnull arguments, int core);
// Whether no thread can begin: one of the parent's would be missing in the processes that it forks.
void seam_refuse_threads(int refuses);
// Begins a schedule below a directory; all earlier processes have ended.
void seam_begin(const char *_Nonnull root, int is_verbose);
void seam_choose(struct seam_choice choice);
// Priorities that change at steps chosen by a seed, in place of the default order.
void seam_prioritize(uint64_t seed, int depth, int length, int is_eager);
// Forks a participant, which waits for its turn.
int seam_start(int process, void (*_Nonnull body)(int));
// Runs all started participants to their end.
enum seam_end seam_run(void);
// In a participant: waits until all have come here; the steps count from then on.
void seam_line(void);

int seam_step_count(void);
struct seam_step seam_step_at(int index);
const char *_Nonnull seam_step_text(int index);
const char *_Nonnull seam_call_name(int call);
// The choices that differed from the default order, from whatever origin.
int seam_made_count(void);
struct seam_choice seam_made_at(int index);
// The outcome of a process: 0 for an ordinary end, otherwise its signal or status; -1 if it was killed.
int seam_status(int process);

// What a participant reports, with a number that orders all reports.
void seam_note(const char *_Nonnull text);
const char *_Nonnull seam_notes(int process);
uint64_t seam_stamp(void);
int64_t seam_now(void);
// The first moment at which all choices were made.
int64_t seam_silence(void);
int seam_was_stopped(int process);
// Copies a small tree into a directory, and removes all in one except files of a name.
int seam_copy_tree(const char *_Nonnull from, const char *_Nonnull to);
void seam_remove_tree(const char *_Nonnull path, const char *_Nonnull except);
// Lets the participants inherit the descriptors of a directory.
void seam_name_open(const char *_Nonnull path);
// What is in a tree: names without the parts that differ each time, sizes, and contents.
uint64_t seam_tree_hash(const char *_Nonnull path);
int64_t seam_real_nanoseconds(void);
// The processor time of this process and of its children that have ended.
int64_t seam_used_nanoseconds(void);

#endif
