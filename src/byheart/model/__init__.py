"""Define the value types: plain, frozen, without I/O, and shared by all folders."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from byheart.model.answers import (
        FUSIONS,
        GRANULARITIES,
        MODES,
        VERDICTS,
        ChunkHit,
        Explanation,
        Fusion,
        Granularity,
        Hit,
        HitConflict,
        IndexState,
        Judgement,
        MemoryFields,
        MemoryHit,
        Mode,
        NamedTime,
        RecallAnswer,
        RecalledMemory,
        RecalledSummary,
        RecallExplanation,
        RerankerExplanation,
        RetrieverExplanation,
        SearchAnswer,
        SectionHit,
        Verdict,
        VerdictExplanation,
    )
    from byheart.model.api_keys import (
        ACCESSES,
        VOICES,
        Access,
        ApiKey,
        CreatedApiKey,
        KeyPurpose,
        Voice,
    )
    from byheart.model.conversations import (
        Promoted,
        Promotion,
        RestoredSession,
        ResumedSession,
        Session,
        SessionStats,
        SessionSummary,
        Transcript,
        Turn,
    )
    from byheart.model.feedback import FeedbackResult
    from byheart.model.figures import (
        Bench,
        BenchFigures,
        BenchRun,
        CacheStats,
        Inventory,
        Latency,
        QueryStats,
        SaveStats,
        Sizes,
        SlowQuery,
        Stats,
        Status,
        WorkStats,
    )
    from byheart.model.json_form import to_wire
    from byheart.model.memories import (
        ASIDE,
        ECHO,
        HEADING_SEPARATOR,
        ORIGINS,
        UNEMBEDDED,
        Chunk,
        ChunkWindow,
        Contradiction,
        Entity,
        EntityPage,
        Filter,
        Heading,
        HistoryEntry,
        Match,
        Memory,
        MemoryPage,
        Operation,
        Origin,
        SaveResult,
        SaveStatus,
        Similar,
        client_id_of,
        section_of,
        text_id,
        usual_origin,
    )
    from byheart.model.prompts import (
        AnthropicPrompt,
        ContextAnswer,
        ContextItem,
        ContextPart,
        ContextReceipt,
        LeftOut,
        LeftOutReason,
        PromptMessage,
        SystemBlock,
    )
    from byheart.model.receipts import ReceiptPage, ReceiptSummary, ReceiptVerb, StoredReceipt
    from byheart.model.review import (
        REVIEW_REASONS,
        KeptItem,
        ReviewAction,
        ReviewItem,
        ReviewQueue,
        ReviewReason,
    )
    from byheart.model.upkeep import (
        Backup,
        Copied,
        CopyProgress,
        Dedupe,
        EmbeddedShare,
        Exported,
        Finding,
        Forgotten,
        Imported,
        Merged,
        MergeProposal,
        Reembedding,
        Remark,
        Removal,
        Reviewed,
        Skipped,
        TransferProgress,
        WrittenFile,
    )
    from byheart.model.views import (
        Brief,
        Briefs,
        ChangedMemory,
        Changes,
        ChunkPage,
        Day,
        Lane,
        MapRegion,
        MemoryChunk,
        RenderedMemory,
        SimilarMemories,
        SpaceMap,
        TextVersion,
        Timeline,
        VersionPage,
    )
    from byheart.model.workspaces import (
        STALE_SECONDS,
        FileError,
        Indexed,
        IndexedFile,
        IndexProgress,
        RedactedFile,
        Workspace,
    )

# Imported when first used: a hook that runs after every tool call needs almost none of them.
_NAMES = {
    "answers": (
        "ChunkHit Explanation FUSIONS Fusion GRANULARITIES Granularity Hit HitConflict "
        "IndexState Judgement MODES MemoryFields MemoryHit Mode NamedTime RecallAnswer "
        "RecallExplanation RecalledMemory RecalledSummary RerankerExplanation "
        "RetrieverExplanation SearchAnswer SectionHit VERDICTS Verdict VerdictExplanation"
    ),
    "api_keys": "ACCESSES Access ApiKey CreatedApiKey KeyPurpose VOICES Voice",
    "conversations": (
        "Promoted Promotion RestoredSession ResumedSession Session SessionStats "
        "SessionSummary Transcript Turn"
    ),
    "feedback": "FeedbackResult",
    "figures": (
        "Bench BenchFigures BenchRun CacheStats Inventory Latency QueryStats SaveStats Sizes "
        "SlowQuery Stats Status WorkStats"
    ),
    "memories": (
        "ASIDE Chunk ChunkWindow Contradiction ECHO Entity EntityPage Filter "
        "HEADING_SEPARATOR Heading HistoryEntry Match Memory MemoryPage ORIGINS Operation "
        "Origin SaveResult SaveStatus Similar UNEMBEDDED client_id_of section_of text_id "
        "usual_origin"
    ),
    "prompts": (
        "AnthropicPrompt ContextAnswer ContextItem ContextPart ContextReceipt LeftOut "
        "LeftOutReason PromptMessage SystemBlock"
    ),
    "receipts": "ReceiptPage ReceiptSummary ReceiptVerb StoredReceipt",
    "review": "KeptItem REVIEW_REASONS ReviewAction ReviewItem ReviewQueue ReviewReason",
    "upkeep": (
        "Backup Copied CopyProgress Dedupe EmbeddedShare Exported Finding Forgotten Imported "
        "MergeProposal Merged Reembedding Remark Removal Reviewed Skipped TransferProgress "
        "WrittenFile"
    ),
    "views": (
        "Brief Briefs ChangedMemory Changes ChunkPage Day Lane MapRegion MemoryChunk "
        "RenderedMemory SimilarMemories SpaceMap TextVersion Timeline VersionPage"
    ),
    "json_form": "to_wire",
    "workspaces": (
        "FileError IndexProgress Indexed IndexedFile RedactedFile STALE_SECONDS Workspace"
    ),
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

__all__ = [
    "ACCESSES",
    "ASIDE",
    "ECHO",
    "FUSIONS",
    "GRANULARITIES",
    "HEADING_SEPARATOR",
    "MODES",
    "ORIGINS",
    "REVIEW_REASONS",
    "STALE_SECONDS",
    "UNEMBEDDED",
    "VERDICTS",
    "VOICES",
    "Access",
    "AnthropicPrompt",
    "ApiKey",
    "Backup",
    "Bench",
    "BenchFigures",
    "BenchRun",
    "Brief",
    "Briefs",
    "CacheStats",
    "ChangedMemory",
    "Changes",
    "Chunk",
    "ChunkHit",
    "ChunkPage",
    "ChunkWindow",
    "ContextAnswer",
    "ContextItem",
    "ContextPart",
    "ContextReceipt",
    "Contradiction",
    "Copied",
    "CopyProgress",
    "CreatedApiKey",
    "Day",
    "Dedupe",
    "EmbeddedShare",
    "Entity",
    "EntityPage",
    "Explanation",
    "Exported",
    "FeedbackResult",
    "FileError",
    "Filter",
    "Finding",
    "Forgotten",
    "Fusion",
    "Granularity",
    "Heading",
    "HistoryEntry",
    "Hit",
    "HitConflict",
    "Imported",
    "IndexProgress",
    "IndexState",
    "Indexed",
    "IndexedFile",
    "Inventory",
    "Judgement",
    "KeptItem",
    "KeyPurpose",
    "Lane",
    "Latency",
    "LeftOut",
    "LeftOutReason",
    "MapRegion",
    "Match",
    "Memory",
    "MemoryChunk",
    "MemoryFields",
    "MemoryHit",
    "MemoryPage",
    "MergeProposal",
    "Merged",
    "Mode",
    "NamedTime",
    "Operation",
    "Origin",
    "Promoted",
    "Promotion",
    "PromptMessage",
    "QueryStats",
    "RecallAnswer",
    "RecallExplanation",
    "RecalledMemory",
    "RecalledSummary",
    "ReceiptPage",
    "ReceiptSummary",
    "ReceiptVerb",
    "RedactedFile",
    "Reembedding",
    "Remark",
    "Removal",
    "RenderedMemory",
    "RerankerExplanation",
    "RestoredSession",
    "ResumedSession",
    "RetrieverExplanation",
    "ReviewAction",
    "ReviewItem",
    "ReviewQueue",
    "ReviewReason",
    "Reviewed",
    "SaveResult",
    "SaveStats",
    "SaveStatus",
    "SearchAnswer",
    "SectionHit",
    "Session",
    "SessionStats",
    "SessionSummary",
    "Similar",
    "SimilarMemories",
    "Sizes",
    "Skipped",
    "SlowQuery",
    "SpaceMap",
    "Stats",
    "Status",
    "StoredReceipt",
    "SystemBlock",
    "TextVersion",
    "Timeline",
    "Transcript",
    "TransferProgress",
    "Turn",
    "Verdict",
    "VerdictExplanation",
    "VersionPage",
    "Voice",
    "WorkStats",
    "Workspace",
    "WrittenFile",
    "client_id_of",
    "section_of",
    "text_id",
    "to_wire",
    "usual_origin",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
