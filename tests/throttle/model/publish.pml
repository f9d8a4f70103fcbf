/* Publish, fence, take over, restore, resume: acquire.lua and publisher.lua, abstracted.
 *
 * One server, which may be emptied, or come back from an older save as another process; the
 * trade log is in it, too. Two jobs of one name: a lease may run out at any time, a
 * message may arrive late, without an answer, again, or after its sender has died. A job's
 * driver and its tasks are one sender: they send the same message, under one term. One
 * client that resumes. Spin goes through every order of these steps.
 *
 * CHECKED
 *   place    an epoch's offset never has two contents, whoever saw the first one
 *   chain    within an epoch windows follow each other: none is left out or comes twice
 *   log      what is published is what the log holds: nothing of a log that was lost
 *   resume   a client that has resumed holds what a new client is given
 *
 * NO_... takes a guard away; each must be found (test_model.py). The comparison of cuts
 * guards against faults of a job, which has none here.
 */
#ifndef WINDOWS
#define WINDOWS 2
#endif
#ifndef TERMS
#define TERMS 3                 /* how often the lease is taken, in all */
#endif
#define PLACES 24               /* of (epoch, offset) */
#define PLACE(e, o) ((e) * (WINDOWS + 1) + (o))

/* What the server holds: tt:meta, the newest value, the trade log. */
byte term, cut, epoch, offset, epoch_process;
byte value, value_at;           /* the last value, and the offset that it came with */
byte closed;                    /* windows that are over */
byte content[WINDOWS + 1];      /* of each window: which log it was read from */

/* The process that the server is, and an older save of it. */
byte process = 1;
bool saved, lost;
byte s_term, s_cut, s_epoch, s_offset, s_epoch_process, s_value, s_value_at, s_closed;

/* The world: never forgotten, by nobody given twice. */
byte logs = 1, epochs, terms;

/* Ghosts: what was seen at a place, and the newest window of an epoch. */
byte seen[PLACES];
byte newest[TERMS + 1];

/* A client: where it is, and what it shows. */
byte c_epoch, c_offset, c_value;

/* What no step looks at again makes no further states. */
#define FORGET sends = 0; start = 0; end = 0; read = 0
#define FORGET_SAVE saved = 0; s_term = 0; s_cut = 0; s_epoch = 0; s_offset = 0; \
  s_epoch_process = 0; s_value = 0; s_value_at = 0; s_closed = 0

/* A window that is lost is filled again by another log, with other trades. */
inline refill(from) {
  logs++;
  k = from + 1;
  do
  :: k <= WINDOWS -> content[k] = logs; k++
  :: else -> break
  od;
  k = 0
}

active proctype Server() {
  byte k;
  k = 1;
  do
  :: k <= WINDOWS -> content[k] = logs; k++
  :: else -> break
  od;
  k = 0;
  do
  :: atomic { closed < WINDOWS -> closed++ }
  :: atomic { !saved && !lost -> saved = 1;
       s_term = term; s_cut = cut; s_epoch = epoch; s_offset = offset;
       s_epoch_process = epoch_process; s_value = value; s_value_at = value_at;
       s_closed = closed }
  :: atomic { saved && !lost -> lost = 1; process++;
       term = s_term; cut = s_cut; epoch = s_epoch; offset = s_offset;
       epoch_process = s_epoch_process; value = s_value; value_at = s_value_at;
       refill(s_closed); FORGET_SAVE }
  :: atomic { !lost -> lost = 1;
       term = 0; cut = 0; epoch = 0; offset = 0; epoch_process = 0; value = 0; value_at = 0;
       refill(0); FORGET_SAVE }
  od
}

proctype Job() {
  byte my_term, my_cut, start, end, read;
  bool leads, sends;
  do
  :: /* acquire.lua: the lease is free, or has run out while its holder goes on */
     atomic { !leads && terms < TERMS ->
       if
       :: epoch == 0 || epoch_process != process ->
#ifdef NO_NEW_EPOCH
          if
          :: epoch == 0 -> epochs++; epoch = epochs
          :: else
          fi;
#else
          epochs++; epoch = epochs; newest[epoch] = 0;
#endif
          epoch_process = process
       :: else
       fi;
       terms++;
#ifdef NO_CLOCK_IN_TERMS
       term++;
#else
       term = terms;
#endif
       my_term = term; my_cut = cut; leads = 1; FORGET }
  :: /* a window is read and its message is on its way */
     atomic { leads && !sends && my_cut < closed ->
       start = my_cut; end = my_cut + 1; read = content[end]; sends = 1 }
  :: /* publisher.lua, at last */
     atomic { sends ->
       if
#ifndef NO_TERM
       :: term != my_term -> leads = 0; FORGET
#endif
#ifndef NO_RUN
       :: epoch_process != process -> leads = 0; FORGET
#endif
#ifndef NO_REPEAT
       :: cut == end -> my_cut = end; FORGET
#endif
       :: cut != start && cut != end -> leads = 0; FORGET
       :: else ->
          offset++; cut = end; value = (read << 2) + end; value_at = offset;
          assert(seen[PLACE(epoch, offset)] == 0                       /* place */
              || seen[PLACE(epoch, offset)] == value);
          assert(newest[epoch] == 0 || newest[epoch] + 1 == end);      /* chain */
          assert(read == content[end]);                                /* log */
          seen[PLACE(epoch, offset)] = value; newest[epoch] = end;
          if
          :: my_cut = end; FORGET
          :: true               /* the answer is lost: it is sent again */
          fi
       fi }
  :: /* killed, and started again; what it has sent may still arrive */
     atomic { leads -> leads = 0 }
  od
}

/* Resume as stream/delivery does: rows with a greater offset, or all of another epoch. */
active proctype Client() {
  byte times;
  do
  :: atomic { epoch != 0 && times < 2 -> times++;
       if
       :: c_epoch != epoch || c_offset > offset -> c_value = value
       :: else -> if :: value_at > c_offset -> c_value = value :: else fi
       fi;
       c_epoch = epoch; c_offset = offset;
       assert(c_value == value) }                                      /* resume */
  od
}

init { atomic { run Job(); run Job() } }
