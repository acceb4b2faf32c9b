% Who may do what with memories.
%
% An operation is permitted when its predicate holds. No clause, no answer, an exception or a rule
% that takes too long all mean no. A deployment adds clauses in files of its own, to any predicate
% here; what it wants to forbid in spite of these rules it says with memory_forbidden/1.
%
% What a rule can ask:
%   registered(Volk)                                  the Volk is in the directory
%   has_role(Volk, Role)                              with this role
%   memory_owner(Key, Volk)                           of the memory that is asked about
%   memory_classification(Key, Classification)        private, shared or system; likewise
%   memory_shared_with(Key, Volk)                     likewise
%   memory_classification_allowed(Volk, Classification)
%   memory_share_blocked(Volk, Target)                no clause here: a deployment's own
%   memory_delegation(From, To, Expires)              seconds since 1970 as a float, or never
%   now(Seconds)                                      the moment of the question
%
% Ids, keys and roles are atoms. SYS:MEMORY is the engine: it can never be registered.

:- dynamic registered/1, has_role/2.
:- dynamic memory_owner/2, memory_classification/2, memory_shared_with/2.
:- dynamic memory_classification_allowed/2, memory_share_blocked/2, memory_delegation/3.
:- dynamic can_store_memory/2, can_read_memory/2, can_update_memory/2, can_delete_memory/2.
:- dynamic can_share_memory/3, can_migrate_session/2, can_read_audit/2.
:- dynamic can_delegate/2, can_revoke/2.
:- dynamic memory_forbidden/1, memory_denial/2.

% --- permissions --------------------------------------------------------------------------

can_store_memory(Volk, Classification) :-
    registered(Volk),
    memory_classification_allowed(Volk, Classification).

can_read_memory(Volk, Key) :-
    registered(Volk),
    memory_readable_by(Key, Volk).

can_update_memory(Volk, Key) :-
    registered(Volk),
    memory_owner(Key, Volk).

can_delete_memory(Volk, Key) :-
    registered(Volk),
    memory_owner(Key, Volk).

can_share_memory(Volk, Target, Key) :-
    registered(Volk),
    memory_owner(Key, Volk),
    registered(Target),
    \+ memory_share_blocked(Volk, Target).

% Everything of a session. What a Volk owns in it the Volk may always move.
can_migrate_session('SYS:MEMORY', _Session).

can_read_audit(Volk, Key) :-
    registered(Volk),
    memory_owner(Key, Volk).
can_read_audit(Volk, _Key) :-
    registered(Volk),
    has_role(Volk, system_admin).

can_delegate(Volk, Delegate) :-
    registered(Volk),
    registered(Delegate),
    Volk \== Delegate,
    \+ memory_share_blocked(Volk, Delegate).

% Taking a delegation back needs nothing of the other side.
can_revoke(Volk, _Delegate) :-
    registered(Volk).

% --- what permissions rest on -------------------------------------------------------------

memory_readable_by(Key, Volk) :- memory_owner(Key, Volk).
memory_readable_by(Key, _Volk) :- memory_classification(Key, shared).
memory_readable_by(Key, _Volk) :- memory_classification(Key, system).
memory_readable_by(Key, Volk) :- memory_shared_with(Key, Volk).
memory_readable_by(Key, Volk) :-
    memory_shared_with(Key, Grantor),
    \+ memory_owner(Key, Grantor),
    delegates_to(Grantor, Volk).

memory_classification_allowed(_Volk, private).
memory_classification_allowed(Volk, Classification) :-
    classification_role(Classification, Role),
    has_role(Volk, Role).

classification_role(shared, team_lead).
classification_role(system, system_admin).

registered(Volk) :- directory_volk(Volk).
has_role(Volk, Role) :- directory_role(Volk, Role).
memory_delegation(From, To, Expires) :- kept_delegation(From, To, Expires).

memory_owner(Key, Volk) :- asked_memory(memory(Key, Volk, _, _)).
memory_classification(Key, Classification) :- asked_memory(memory(Key, _, Classification, _)).
memory_shared_with(Key, Volk) :-
    asked_memory(memory(Key, _, _, Volks)),
    member(Volk, Volks).

% --- delegation ---------------------------------------------------------------------------

% A Volk reads what was shared with a grantor: one that delegated to it, directly or over others,
% at most three steps in all. Only links that hold now count: not expired, both ends registered.

delegation_hops(3).

delegates_to(Grantor, Volk) :-
    grantors(Volk, Grantors),
    memberchk(Grantor, Grantors).

% Looked up once for a question, however many memories it is about.
grantors(Volk, Grantors) :-
    kept_grantors(Volk, Grantors),
    !.
grantors(Volk, Grantors) :-
    delegation_hops(Hops),
    reached(Hops, [Volk], [Volk], Reached),
    ord_subtract(Reached, [Volk], Grantors),
    keep_grantors(Volk, Grantors).

reached(0, _Frontier, Known, Known) :- !.
reached(_Hops, [], Known, Known) :- !.
reached(Hops, Frontier, Known, Reached) :-
    findall(From, (member(To, Frontier), live_delegation(From, To)), Found),
    sort(Found, Sorted),
    ord_subtract(Sorted, Known, New),
    ord_union(Known, New, Wider),
    Left is Hops - 1,
    reached(Left, New, Wider, Reached).

live_delegation(From, To) :-
    memory_delegation(From, To, Expires),
    unexpired(Expires),
    registered(From),
    registered(To).

unexpired(never) :- !.
unexpired(Expires) :-
    now(Now),
    Now < Expires.

% --- reasons for a denial, the first that holds is given ----------------------------------

memory_denial(Question, 'SYS:MEMORY is the engine itself and owns no memories') :-
    asking(Question, 'SYS:MEMORY').
memory_denial(Question, 'it is not registered') :-
    asking(Question, Volk),
    \+ registered(Volk).
memory_denial(can_store_memory(_Volk, Classification), Reason) :-
    classification_role(Classification, Role),
    atomic_list_concat(['the classification ', Classification, ' needs the role ', Role], Reason).
memory_denial(can_read_memory(_Volk, _Key),
              'the memory is private: neither its own, nor shared with it, nor delegated to it').
memory_denial(can_update_memory(Volk, Key), 'it is not the owner') :- \+ memory_owner(Key, Volk).
memory_denial(can_delete_memory(Volk, Key), 'it is not the owner') :- \+ memory_owner(Key, Volk).
memory_denial(can_share_memory(Volk, _, Key), 'it is not the owner') :- \+ memory_owner(Key, Volk).
memory_denial(can_share_memory(_Volk, Target, _Key), 'the target is not registered') :-
    \+ registered(Target).
memory_denial(can_share_memory(Volk, Target, _Key), 'sharing with this target is blocked') :-
    memory_share_blocked(Volk, Target).
memory_denial(can_migrate_session(_, _), 'only SYS:MEMORY moves everything of a session').
memory_denial(can_read_audit(_, _), 'it is neither the owner nor has it the role system_admin').
memory_denial(can_delegate(_Volk, Delegate), 'the delegate is not registered') :-
    \+ registered(Delegate).
memory_denial(can_delegate(Volk, Volk), 'a Volk cannot delegate to itself').
memory_denial(can_delegate(Volk, Delegate), 'sharing with this delegate is blocked') :-
    memory_share_blocked(Volk, Delegate).

asking(Question, Volk) :-
    compound(Question),
    functor(Question, Name, _),
    Name \== can_migrate_session,
    arg(1, Question, Volk).
