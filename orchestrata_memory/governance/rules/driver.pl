% Loads rules into a module of their own, one for each engine, and puts questions to them.
%
% Nothing here decides anything: see memory.pl. Questions, ids and the facts of a memory come as
% terms; the facts live in global variables for as long as one question is open.

:- module(orchestrata_memory_driver,
          [ silence/0, new_rules/1, drop_rules/1, load_rules/3, set_volks/2, set_delegations/2,
            ask/7, ask_many/6, ask_grantors/5, reading_forbidden/2,
            asked_memory/1, now/1, kept_grantors/2, keep_grantors/2
          ]).

:- use_module(library(lists)).
:- use_module(library(ordsets)).
:- use_module(library(apply)).

%!  silence
%   Rules answer yes or no and have nothing to say on the terminal. The streams are those of this
%   thread: another component that uses Prolog keeps its own. Nor may a rule end the process, and
%   one that never ends by filling the memory ends at the stack limit.
silence :-
    open_null_stream(Out),
    set_stream(Out, alias(user_output)),
    set_stream(Out, alias(user_error)),
    set_output(Out),
    open_string("", In),
    set_stream(In, alias(user_input)),
    set_input(In),
    set_prolog_flag(stack_limit, 256 000 000),
    at_halt(cancel_halt('a rule may not end the process')).

% --- rule modules -------------------------------------------------------------------------

engine_fact(directory_volk/1).
engine_fact(directory_role/2).
engine_fact(kept_delegation/3).

service(asked_memory/1).
service(now/1).
service(kept_grantors/2).
service(keep_grantors/2).

%!  new_rules(+Module)
%   An empty module that sees the system and its libraries, and nothing of anyone's `user`.
new_rules(Module) :-
    set_module(Module:base(system)),
    set_module(Module:class(user)),
    forall(engine_fact(Fact), dynamic(Module:Fact)),
    forall(service(Service), Module:import(orchestrata_memory_driver:Service)),
    Module:use_module(library(lists)),
    Module:use_module(library(ordsets)).

%!  drop_rules(+Module)
drop_rules(Module) :-
    forall(( current_predicate(Module:Name/Arity),
             functor(Head, Name, Arity),
             predicate_property(Module:Head, dynamic),
             \+ predicate_property(Module:Head, imported_from(_))
           ),
           retractall(Module:Head)).

%!  load_rules(+Module, +Text, -Result)
%   Result is loaded(Defined), a list of Name/Arity as atoms, or problem(Line, Message).
load_rules(Module, Text, Result) :-
    setup_call_cleanup(
        open_string(Text, Stream),
        catch(load_terms(Stream, Module, [], Defined), problem(Line, Message), true),
        close(Stream)),
    (   nonvar(Line)
    ->  Result = problem(Line, Message)
    ;   sort(Defined, Names),
        Result = loaded(Names)
    ).

load_terms(Stream, Module, Defined0, Defined) :-
    next_term(Stream, Module, Term, Line),
    (   Term == end_of_file
    ->  Defined = Defined0
    ;   catch(add_term(Term, Module, Defined0, Defined1), Error, true),
        (   var(Error)
        ->  load_terms(Stream, Module, Defined1, Defined)
        ;   failure_text(Error, Message),
            throw(problem(Line, Message))
        )
    ).

next_term(Stream, Module, Term, Line) :-
    catch(read_term(Stream, Term,
                    [module(Module), syntax_errors(error), term_position(Position)]),
          Error, true),
    (   var(Error)
    ->  stream_position_data(line_count, Position, Line)
    ;   error_line(Error, Stream, ErrorLine),
        failure_text(Error, Message),
        throw(problem(ErrorLine, Message))
    ).

error_line(error(_, stream(_, Line, _, _)), _, Line) :- !.
error_line(error(_, string(_, _)), Stream, Line) :- !, line_count(Stream, Line).
error_line(_, Stream, Line) :- line_count(Stream, Line).

add_term((:- Directive), Module, Defined, Defined) :- !, obey(Directive, Module).
add_term((?- _), _, _, _) :- !, throw(refused('a query is not a rule')).
add_term((Head --> Body), Module, Defined0, Defined) :- !,
    dcg_translate_rule((Head --> Body), Clause),
    add_term(Clause, Module, Defined0, Defined).
add_term(Clause, Module, Defined0, [Name|Defined0]) :-
    (   Clause = (Head :- _) -> true ; Head = Clause ),
    check_head(Head, Module),
    functor(Head, Functor, Arity),
    atomic_list_concat([Functor, Arity], /, Name),
    assertz(Module:Clause).

check_head(Head, _) :- \+ callable(Head), !, throw(refused('not a clause')).
check_head(_:_, _) :- !, throw(refused('a clause cannot name a module')).
check_head(registered(Volk), _) :- Volk == 'SYS:MEMORY', !,
    throw(refused('SYS:MEMORY is the engine itself and cannot be registered')).
check_head(Head, Module) :-
    functor(Head, Name, Arity),
    check_owned(Name/Arity),
    check_arity(Name, Arity, Module).

check_owned(Indicator) :-
    ( engine_fact(Indicator) ; service(Indicator) ), !,
    format(atom(Message), '~w belongs to the engine', [Indicator]),
    throw(refused(Message)).
check_owned(_).

% A wrong number of arguments would make a rule that nobody ever asks.
check_arity(Name, Arity, Module) :-
    fixed_name(Name),
    current_predicate(Module:Name/Known),
    Known =\= Arity,
    \+ current_predicate(Module:Name/Arity), !,
    format(atom(Message), '~w/~w is unknown, ~w/~w is meant', [Name, Arity, Name, Known]),
    throw(refused(Message)).
check_arity(_, _, _).

fixed_name(registered).
fixed_name(has_role).
fixed_name(Name) :- ( sub_atom(Name, 0, _, _, can_) ; sub_atom(Name, 0, _, _, memory_) ), !.

obey(dynamic(Names), Module) :- !, dynamic(Module:Names).
obey(discontiguous(_), _) :- !.
obey(multifile(_), _) :- !.
obey(encoding(_), _) :- !.
obey(use_module(library(Library)), Module) :- !, Module:use_module(library(Library)).
obey(use_module(library(Library), Names), Module) :- !,
    Module:use_module(library(Library), Names).
obey(_, _) :-
    throw(refused('of directives only dynamic, discontiguous, multifile, encoding and \c
use_module(library(...)) are allowed')).

failure_text(refused(Message), Message) :- !.
failure_text(error(syntax_error(What), _), Message) :- !,
    format(atom(Message), 'syntax error: ~w', [What]).
failure_text(error(What, _), Message) :- !, short_text(What, Message).
failure_text(What, Message) :- short_text(What, Message).

short_text(Term, Message) :-
    format(string(Text), '~W', [Term, [quoted(true), max_depth(6)]]),
    (   sub_string(Text, 0, 300, After, Start), After > 0
    ->  atom_string(Message, Start)
    ;   atom_string(Message, Text)
    ).

% --- facts of the engine ------------------------------------------------------------------

%!  set_volks(+Module, +Volks)
%   Volks is a list of volk(Id, Roles); the engine's own alias is never one of them.
set_volks(Module, Volks) :-
    retractall(Module:directory_volk(_)),
    retractall(Module:directory_role(_, _)),
    forall(member(volk(Id, Roles), Volks), add_volk(Module, Id, Roles)).

add_volk(_, 'SYS:MEMORY', _) :- !.
add_volk(Module, Id, Roles) :-
    assertz(Module:directory_volk(Id)),
    forall(member(Role, Roles), assertz(Module:directory_role(Id, Role))).

%!  set_delegations(+Module, +Delegations)
set_delegations(Module, Delegations) :-
    retractall(Module:kept_delegation(_, _, _)),
    forall(member(delegation(From, To, Expires), Delegations),
           assertz(Module:kept_delegation(From, To, Expires))).

% --- questions ----------------------------------------------------------------------------

asked_memory(Memory) :- b_getval(orchestrata_memory_asked, Memory).

now(Now) :- b_getval(orchestrata_memory_now, Now).

% Not undone on backtracking, so that a denied memory does not lose it for the next.
kept_grantors(Volk, Grantors) :- nb_getval(orchestrata_memory_grantors, of(Volk, Grantors)).

keep_grantors(Volk, Grantors) :- nb_setval(orchestrata_memory_grantors, of(Volk, Grantors)).

open_question(Now) :-
    nb_setval(orchestrata_memory_grantors, unknown),
    b_setval(orchestrata_memory_now, Now).

%!  ask(+Module, +Question, +Memory, +Now, +Limit, -Outcome, -Reason)
%   Outcome is allowed, denied, raised or exhausted.
ask(Module, Question, Memory, Now, Limit, Outcome, Reason) :-
    open_question(Now),
    b_setval(orchestrata_memory_asked, Memory),
    decided(Module, Question, Limit, Outcome, Problem),
    (   Outcome == denied
    ->  denial(Module, Question, Limit, Reason)
    ;   Reason = Problem
    ).

%!  ask_many(+Module, +Volk, +Memories, +Now, +Limit, -Answers)
%   can_read_memory/2 for each memory; Answers is a string of 1 and 0, e for an error, x for a
%   rule that took too long.
ask_many(Module, Volk, Memories, Now, Limit, Answers) :-
    open_question(Now),
    answers(Memories, Module, Volk, Limit, Codes),
    string_codes(Answers, Codes).

answers([], _, _, _, []).
answers([Memory|Memories], Module, Volk, Limit, [Code|Codes]) :-
    arg(1, Memory, Key),
    b_setval(orchestrata_memory_asked, Memory),
    decided(Module, can_read_memory(Volk, Key), Limit, Outcome, _),
    outcome_code(Outcome, Code),
    answers(Memories, Module, Volk, Limit, Codes).

outcome_code(allowed, 0'1).
outcome_code(denied, 0'0).
outcome_code(raised, 0'e).
outcome_code(exhausted, 0'x).

%!  ask_grantors(+Module, +Volk, +Now, +Limit, -Grantors)
ask_grantors(Module, Volk, Now, Limit, Grantors) :-
    open_question(Now),
    catch(( call_with_inference_limit(Module:grantors(Volk, Found), Limit, Result),
            Result \== inference_limit_exceeded
          ), _, fail), !,
    Grantors = Found.
ask_grantors(_, _, _, _, []).

%!  reading_forbidden(+Module, -Answer)
%   maybe where a clause of memory_forbidden/1 can apply to a read, else never.
reading_forbidden(Module, maybe) :-
    clause(Module:memory_forbidden(can_read_memory(_, _)), _), !.
reading_forbidden(_, never).

decided(Module, Question, Limit, Outcome, Problem) :-
    catch(bounded(Module, Question, Limit, Outcome), Error, true),
    (   var(Error)
    ->  Problem = ''
    ;   Outcome = raised,
        failure_text(Error, Problem)
    ).

bounded(Module, Question, Limit, Outcome) :-
    (   call_with_inference_limit(holds(Module, Question), Limit, Result)
    ->  (   Result == inference_limit_exceeded
        ->  Outcome = exhausted
        ;   Outcome = allowed
        )
    ;   Outcome = denied
    ).

holds(Module, Question) :-
    acting(Question),
    Module:Question,
    !,
    \+ Module:memory_forbidden(Question).

% The engine itself asks for nothing but to migrate, whatever a directory or rule file says.
acting(can_migrate_session(_, _)) :- !.
acting(Question) :- arg(1, Question, Volk), Volk \== 'SYS:MEMORY'.

denial(Module, Question, Limit, Reason) :-
    catch(( call_with_inference_limit(reason(Module, Question, Found), Limit, Result),
            Result \== inference_limit_exceeded
          ), _, fail), !,
    Reason = Found.
denial(_, _, _, 'no rule permits it').

reason(Module, Question, 'a rule of this deployment forbids it') :-
    acting(Question),
    Module:Question, !.
reason(Module, Question, Reason) :-
    Module:memory_denial(Question, Reason), !.
